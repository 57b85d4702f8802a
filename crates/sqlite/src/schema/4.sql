-- Terms of queues and the permits of limited ones are records of kinds that an earlier program does not know: this version keeps it out.

CREATE INDEX executions_queue ON executions (queue);
