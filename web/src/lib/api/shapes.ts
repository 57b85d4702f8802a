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

/** An event, with the fields that the page shows. */
export interface PlatformEvent {
  /** Sort key: time and id, unique per event. */
  SK: string;
  eventType: string;
  timestamp: number;
  number: number;
  properties: Record<string, unknown>;
  context: Record<string, unknown>;
}

/**
 * The unique key of an event. Its number is not unique: heartbeats are not part of the numbered
 * chain.
 */
export const eventKey = (event: PlatformEvent): string => event.SK;

/** Final statuses. */
export const ENDED: readonly string[] = ['SUCCEEDED', 'FAILED', 'STOPPED'];

/** Every status of an execution, in lifecycle order. */
export const STATUSES: readonly Status[] = ['PENDING', 'STARTING', 'RUNNING', 'TERMINATING', 'SUCCEEDED', 'FAILED', 'STOPPED'];
