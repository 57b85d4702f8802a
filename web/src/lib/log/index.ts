// The log viewer, for the pages that show one.
export { default as LogViewer } from './LogViewer.svelte';
export { formatLineRange, parseLineRange, type LineRange } from './permalink';
export { httpLogSource, LogError, type HttpLogSource, type LogSource } from './source';
