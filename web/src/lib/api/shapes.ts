// Short names for the API's types, so that no page spells out the generated paths.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Execution = Schemas['Execution'];
export type Status = Schemas['Status'];
export type Reason = Schemas['Reason'];
export type Job = Schemas['Job'];
export type Task = Schemas['Task'];
export type Lock = Schemas['Lock'];
export type Queue = Schemas['Queue'];
export type Worker = Schemas['Worker'];
export type WorkerAccount = Schemas['WorkerAccount'];
export type DeadLetter = Schemas['DeadLetter'];
export type User = Schemas['User'];
export type Key = Schemas['Key'];
export type Image = Schemas['Image'];
export type Secret = Schemas['Secret'];
export type AuditEvent = Schemas['AuditEvent'];
export type AuditVerification = Schemas['AuditVerification'];
export type Whoami = Schemas['Whoami'];
export type RunRequest = Schemas['RunRequest'];
export type TaskHealth = Schemas['TaskHealth'];
export type LogsResponse = Schemas['LogsResponse'];
export type LogEvent = Schemas['LogEvent'];

/** An event as the log of events writes it: the fields that a person reads. */
export interface PlatformEvent {
  /** Its time and its id: no other event has it. */
  SK: string;
  eventType: string;
  timestamp: number;
  number: number;
  properties: Record<string, unknown>;
  context: Record<string, unknown>;
}

/** What tells a row of events from every other. Its number does not: it is the place in a chain, which a heartbeat has no part in. */
export const eventKey = (event: PlatformEvent): string => event.SK;

/** Statuses that nothing changes any more. */
export const ENDED: readonly string[] = ['SUCCEEDED', 'FAILED', 'STOPPED'];

/** Every status of an execution, in the order of a life. */
export const STATUSES: readonly Status[] = ['PENDING', 'STARTING', 'RUNNING', 'TERMINATING', 'SUCCEEDED', 'FAILED', 'STOPPED'];
