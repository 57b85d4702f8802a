// Links from audit events to the pages of their targets.

/** The path of an entity's page: `TASK:ID` is an execution. */
export function entityPath(entity: string): string[] | undefined {
  const at = entity.indexOf(':');
  const [kind, id] = [entity.slice(0, at), entity.slice(at + 1)];
  switch (kind) {
    case 'TASK':
      return ['executions', id];
    case 'JOB':
      return ['jobs', id];
    default:
      return undefined;
  }
}
