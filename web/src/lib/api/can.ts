// The actions that each role may do in the page. The server decides; this only hides buttons whose
// calls would be refused.

export type Action =
  | 'run'
  | 'kill'
  | 'share'
  | 'redrive'
  | 'releaseLock'
  | 'diagnose'
  | 'manageUsers'
  | 'manageWorkers'
  | 'manageQueues'
  | 'manageImages'
  | 'writeSecrets'
  | 'readAudit'
  | 'readAll';

type Reach = 'all' | 'own' | 'none';

const TABLE: Record<Action, readonly [admin: Reach, operator: Reach, developer: Reach, viewer: Reach]> = {
  run: ['all', 'all', 'all', 'none'],
  kill: ['all', 'all', 'own', 'none'],
  share: ['all', 'all', 'own', 'all'],
  redrive: ['all', 'all', 'none', 'none'],
  releaseLock: ['all', 'none', 'none', 'none'],
  diagnose: ['all', 'none', 'none', 'none'],
  manageUsers: ['all', 'none', 'none', 'none'],
  manageWorkers: ['all', 'none', 'none', 'none'],
  manageQueues: ['all', 'all', 'none', 'none'],
  manageImages: ['all', 'all', 'none', 'none'],
  writeSecrets: ['all', 'all', 'own', 'none'],
  readAudit: ['all', 'none', 'none', 'none'],
  readAll: ['all', 'all', 'none', 'all'],
};

const ROLES = ['admin', 'operator', 'developer', 'viewer'];

/** Whether a role may do this, to any item or to one of these owners. */
export function can(me: { email: string; role: string } | undefined, action: Action, owners?: readonly string[]): boolean {
  const reach = me && TABLE[action][ROLES.indexOf(me.role)];
  if (!reach || reach === 'none') {
    return false;
  }
  return reach === 'all' || !owners || owners.includes(me.email);
}
