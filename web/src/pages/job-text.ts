// Jobs as JSON text: the examples in the forms, and parsing what was typed.
import type { components } from '../lib/api/schema';

type CreateJobRequest = components['schemas']['CreateJobRequest'];
type AddTasksRequest = components['schemas']['AddTasksRequest'];

export const NEW_JOB = `{
  "name": "nightly",
  "tasks": [
    { "taskId": "fetch", "command": "echo fetching" },
    { "taskId": "lint", "command": "echo linting", "dependsOn": ["fetch"] },
    { "taskId": "test", "command": "echo testing", "dependsOn": ["fetch"] },
    { "taskId": "deploy", "command": "echo deploying", "dependsOn": ["lint", "test"], "lock": "production" }
  ]
}
`;

export const ADDED_TASKS = `[
  { "taskId": "notify", "command": "echo done", "dependsOn": [] }
]
`;

/** The job in a text. Throws where it is not JSON. */
export function parseJob(text: string): CreateJobRequest {
  const value = parse(text);
  return (Array.isArray(value) ? { tasks: value } : value) as CreateJobRequest;
}

/** Tasks to add: a list, or an object with one. */
export function parseTasks(text: string): AddTasksRequest {
  return parseJob(text) as AddTasksRequest;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`invalid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
