// The types of the HTTP API, made from its OpenAPI document by `npm run types`. Not to be edited.

export interface paths {
    "/api/logs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a log as text
         * @description Returns the lines after `since` as one text. Repeat it with `last_timestamp` as `since` until `completed` is true. Permission: `read` (admin, operator, viewer; developer: their own only). A signed link to this execution's log works instead of an API key.
         */
        get: operations["getLinkedLogByShortPath"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/access/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain an access decision
         * @description Says whether an action would be allowed, which rule or role decides, and why. Nothing is changed or recorded. Asking about another user needs the role admin; a resource that you may not see is explained as if it did not exist. Permission: `explain_access` (admin; operator, developer, viewer: their own only).
         */
        get: operations["explainAccess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/admin/recover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Recover admin access
         * @description Makes a user an admin and creates a further API key for them, for the case that every admin key is lost. Permission: `manage_users` (admin). Works only over the server's local socket, as the user that runs the server.
         */
        post: operations["recoverAdmin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test alert
         * @description Sends a message to the configured webhook, so that you can see whether alerts arrive. Fails with `CONFLICT` if no webhook is configured or the webhook refuses the message. Permission: `diagnose` (admin).
         */
        post: operations["sendTestAlert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit events
         * @description Lists who did what and when, newest first: every call that changed something or was refused. Permission: `read_audit` (admin).
         */
        get: operations["listAuditEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the audit trail
         * @description Streams all matching events, oldest first, as one JSON object per line. Permission: `read_audit` (admin).
         */
        get: operations["exportAuditTrail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Verify the audit trail
         * @description Checks the hash chain of all events and reports the first event that was altered, removed or reordered. Permission: `read_audit` (admin).
         */
        get: operations["verifyAuditTrail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a backup
         * @description Copies the store, the logs and the keys of the running server to a new directory on its machine. Permission: `backup` (admin). Works only over the server's local socket, as the user that runs the server.
         */
        post: operations["createBackup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/claim/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Exchange an invitation for an API key
         * @description The same with GET, for clients that cannot send POST. Prefer POST: a link preview sends GET, too, and would use the invitation up. Needs no API key.
         */
        get: operations["claimInvitationByGet"];
        put?: never;
        /**
         * Exchange an invitation for an API key
         * @description Works once, until the invitation expires. `NOT_FOUND`: the token is unknown or expired. `CONFLICT`: it was used before. Needs no API key.
         */
        post: operations["claimInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Diagnose the server
         * @description Runs the server's own checks, such as disk, store, worker and alerts, and says what to do where one fails. Permission: `diagnose` (admin).
         */
        get: operations["diagnoseServer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Query or follow the event log
         * @description Lists events, newest first. With `follow=1` the response is a stream of JSON lines that stays open: every line has a `cursor` to resume after, and a line with nothing else is a heartbeat. `tenant` with `app` or `entity` needs a `type`; a combination that no index serves fails with `INVALID_REQUEST`. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["queryEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List executions
         * @description Lists the executions that you may see, newest first. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["listExecutions"];
        put?: never;
        /**
         * Run a command
         * @description Submits a command. The response is sent when the execution is recorded durably; it runs when a worker is free. `lock_wait` needs `lock`; `git_ref`, `git_path` and `git_token` need `git_repo`. Unknown fields are ignored, except those that look like a misspelled one. `?dry_run=1` is an older way to call `dryRunCommand`. Permission: `run` (admin, operator, developer).
         */
        post: operations["createExecution"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an execution
         * @description Returns the whole record: command, status, times, exit code and cost. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["getExecution"];
        put?: never;
        post?: never;
        /**
         * Kill an execution
         * @description Sends SIGTERM to the command, and SIGKILL if it has not exited after the grace period. An execution that has not started is stopped at once. Succeeds with 204 if it had already finished. Permission: `kill` (admin, operator; developer: their own only).
         */
        delete: operations["killExecution"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the events of an execution
         * @description Lists them in the order in which they happened. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["listExecutionEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/kill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Kill an execution that has not finished
         * @description Like `killExecution`, but fails with `INVALID_REQUEST` if the execution has already finished. Permission: `kill` (admin, operator; developer: their own only).
         */
        post: operations["killUnfinishedExecution"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a signed link to a log
         * @description Creates an address that opens this one log without an API key for 48 hours. It stops working earlier if the key or the user that created it is revoked. Permission: `share_log` (admin, operator, viewer; developer: their own only).
         */
        post: operations["createLogLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the log of an execution
         * @description Returns all lines, or those that the parameters select. While the execution runs and no lines are selected, `events` is null in the JSON form: follow the log at `websocket_url` instead. `format=raw` returns the command's exact bytes and supports HTTP ranges. Combine `from_line` with `limit`, or use `tail`, not both. Permission: `read` (admin, operator, viewer; developer: their own only). A signed link to this execution's log works instead of an API key.
         */
        get: operations["getLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/logs/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search the log of an execution
         * @description Returns the first matching lines and counts all matches. A search that takes longer than 20 seconds returns what it has found, with `complete: false`; continue at `next_line`. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["searchLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run an execution again
         * @description Submits the same command as a new execution of yours. Rules are evaluated for you, now. Permission: `run` (admin, operator, developer).
         */
        post: operations["rerunExecution"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the status of an execution
         * @description Returns the status, with the reason why it waits or finished. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["getExecutionStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the log of an execution
         * @description Opens a WebSocket that sends the lines written so far, then new lines as they arrive, then a `disconnect` message. Use the `websocket_url` of other responses, or an API key. Permission: `read` (admin, operator, viewer; developer: their own only). A ticket of this execution's `websocket_url` works instead of an API key.
         */
        get: operations["streamLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/executions/{id}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Wait until an execution finishes
         * @description Responds as soon as the execution has finished, or when `timeout` is over: then `status` is still an open one. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["waitForExecution"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all groups
         * @description Permission: `manage_users` (admin).
         */
        get: operations["listGroups"];
        put?: never;
        /**
         * Create or replace a group
         * @description Sets all members of the group: an e-mail address that the body does not list is no member afterwards. Members need not be users yet. Permission: `manage_users` (admin).
         */
        post: operations["putGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/groups/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a group
         * @description Rules and secrets that name the group apply to none of its former members afterwards. Permission: `manage_users` (admin).
         */
        delete: operations["deleteGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the server's health and version
         * @description Needs no API key.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health/reconcile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Find and repair inconsistent records
         * @description Compares executions, locks, secrets, users and ownerships with each other, repairs what can be repaired and reports the rest. Permission: `reconcile` (admin).
         */
        post: operations["reconcileRecords"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check the health of all running executions
         * @description Classifies each running execution that you may see by how long ago it was last heard from: healthy, warning, critical or overtime. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["checkExecutions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health/tasks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check the health of a running execution
         * @description Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["checkExecution"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/images": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all images
         * @description Permission: `read_images` (every role).
         */
        get: operations["listImages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/images/{image}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an image
         * @description Permission: `read_images` (every role).
         */
        get: operations["getImage"];
        put?: never;
        post?: never;
        /**
         * Unregister an image
         * @description Unregisters the image with this id, or all images with this reference. The built-in image `local` cannot be unregistered. Permission: `manage_images` (admin, operator).
         */
        delete: operations["unregisterImage"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/images/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Register an image
         * @description Makes an image available to commands. Registering the same reference with other settings creates a second image with an id of its own. Permission: `manage_images` (admin, operator).
         */
        post: operations["registerImage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List jobs
         * @description Lists the jobs that you may see, newest first, without their tasks. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["listJobs"];
        put?: never;
        /**
         * Submit a job
         * @description Submits a graph of tasks. The response is sent when all of it is recorded durably; tasks without dependencies are queued at once. Permission: `run` (admin, operator, developer).
         */
        post: operations["createJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a job
         * @description Returns the job with the status of every task. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a job
         * @description Kills its running tasks and starts no more. A cancelled job cannot be resumed. Permission: `kill` (admin, operator; developer: their own only).
         */
        post: operations["cancelJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a failed job
         * @description Runs its failed tasks again, and the tasks that waited for them. Tasks that completed are not run again. The body can change failed and waiting tasks. Permission: `run` (admin, operator, developer).
         */
        post: operations["resumeJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add tasks to a job
         * @description The job must not have finished. The new tasks may depend on each other and on tasks that the job already has. Permission: `run` (admin, operator, developer).
         */
        post: operations["addTasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/tasks/{task}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the events of a task
         * @description Lists the events of every execution of the task, in order. The list is empty while the task waits for its dependencies. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["listTaskEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/locks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the locks that are held
         * @description Permission: `read_locks` (every role).
         */
        get: operations["listLocks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/locks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Release a lock
         * @description Takes the lock from the execution that holds it. That execution goes on without the lock, so make sure that this is safe. The next waiting execution gets the lock. Permission: `release_lock` (admin).
         */
        delete: operations["releaseLock"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/logs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a log as text
         * @description Returns the lines after `since` as one text. Repeat it with `last_timestamp` as `since` until `completed` is true. Permission: `read` (admin, operator, viewer; developer: their own only). A signed link to this execution's log works instead of an API key.
         */
        get: operations["getLinkedLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the metrics
         * @description Returns the metrics in the Prometheus text format. Permission: `metrics` (admin, operator, viewer). Needs no API key where the setting `metrics_public` is on.
         */
        get: operations["getApiMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the OpenAPI document
         * @description Returns this description of the API. Needs no API key.
         */
        get: operations["getOpenApiDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/playbooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List playbooks
         * @description Lists the newest version of each playbook that you may run or manage. Permission: `read_playbooks` (every role).
         */
        get: operations["listPlaybooks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/playbooks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a playbook
         * @description Returns the newest version, or the one that `version` names. The versions of a deleted playbook are gone. Permission: `read_playbooks` (every role).
         */
        get: operations["getPlaybook"];
        /**
         * Save a new version of a playbook
         * @description Creates the playbook, or adds a version to it; older versions remain. Unknown fields are refused. Permission: `manage_playbooks` (admin).
         */
        put: operations["putPlaybook"];
        post?: never;
        /**
         * Delete a playbook
         * @description Deletes all versions. Executions of it that were submitted before go on. Permission: `manage_playbooks` (admin).
         */
        delete: operations["deletePlaybook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/playbooks/{name}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a playbook
         * @description Checks the parameters and submits the playbook's command. Parameters reach the command as data, never as part of a shell text. The response is sent when the execution is recorded durably. `?dry_run=1` is an older way to call `dryRunPlaybook`. Permission: `run` (admin, operator, developer).
         */
        post: operations["runPlaybook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/playbooks/{name}/run/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a run of a playbook without running it
         * @description Checks the same request as `runPlaybook` and says what would happen. Nothing is recorded or run. Permission: `run` (admin, operator, developer).
         */
        post: operations["dryRunPlaybook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List queues
         * @description Lists every queue that has executions or settings, or that a worker serves. The numbers count the executions of all users. Permission: `read_queues` (every role).
         */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Pause, resume or limit a queue
         * @description Changes the settings that the body names and keeps the others. A paused queue starts nothing new; running executions go on. `reason` is accepted only with `paused: true`. Permission: `manage_queues` (admin, operator).
         */
        put: operations["putQueue"];
        post?: never;
        /**
         * Remove the settings of a queue
         * @description The queue is no longer paused or limited. Its executions are kept. Permission: `manage_queues` (admin, operator).
         */
        delete: operations["resetQueue"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}/dead": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the dead letters of a queue
         * @description Lists the executions that you may see and that failed for good after their last attempt, newest first. Permission: `read` (admin, operator, viewer; developer: their own only).
         */
        get: operations["listDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queues/{name}/redrive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run dead letters again
         * @description Runs each dead letter again: as a new execution of its owner, or by resuming its job. Name them in `execution_ids`, or leave the body out for the oldest ones; `next` in the response continues where one request ended. Permission: `redrive` (admin, operator).
         */
        post: operations["redriveDeadLetters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all rules
         * @description Lists the rules in the order in which they are evaluated: deny rules first, then allow rules, each by name. Permission: `manage_users` (admin).
         */
        get: operations["listRules"];
        put?: never;
        /**
         * Create or replace a rule
         * @description The rule applies from the next submit on; running executions go on. An `allow` rule must list what it allows. A `deny` rule must list what it denies or to whom it applies; one with `playbooks` lists nothing else. Unknown fields are refused. Permission: `manage_users` (admin).
         */
        post: operations["putRule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/rules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a rule
         * @description Permission: `manage_users` (admin).
         */
        delete: operations["deleteRule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command
         * @description Submits a command. The response is sent when the execution is recorded durably; it runs when a worker is free. `lock_wait` needs `lock`; `git_ref`, `git_path` and `git_token` need `git_repo`. Unknown fields are ignored, except those that look like a misspelled one. `?dry_run=1` is an older way to call `dryRunCommand`. Permission: `run` (admin, operator, developer).
         */
        post: operations["runCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/run/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a command without running it
         * @description Checks the same request as `runCommand` and says what would happen: whether rules allow it, who holds its lock, where it would run and what it would cost. Nothing is recorded or run. Permission: `run` (admin, operator, developer).
         */
        post: operations["dryRunCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sealing-key/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the key that encrypts secrets
         * @description Creates a new key, encrypts every secret with it and deletes keys that no secret needs. Backups made before still need the old key, which they contain. Permission: `rotate_sealing_key` (admin).
         */
        post: operations["rotateSealingKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List secrets
         * @description Lists the secrets that you may use or manage, without their values. Permission: `read_secrets` (every role).
         */
        get: operations["listSecrets"];
        put?: never;
        /**
         * Create a secret
         * @description Stores a value, encrypted. Fails with `SECRET_ALREADY_EXISTS` and changes nothing if the name is taken. Only an admin may use a `key_name` that changes what programs load, such as LD_PRELOAD. Permission: `write_secrets` (admin, operator; developer: their own only).
         */
        post: operations["createSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a secret
         * @description Returns the secret, with its value if you may read it: its owners and admins may. Permission: `read_secrets` (every role).
         */
        get: operations["getSecret"];
        /**
         * Change a secret
         * @description Changes what the body names, at least one field, and keeps the rest. Running executions keep the old value. Permission: `write_secrets` (admin, operator; developer: their own only).
         */
        put: operations["updateSecret"];
        post?: never;
        /**
         * Delete a secret
         * @description Executions that need the secret and have not started will fail to start. Permission: `write_secrets` (admin, operator; developer: their own only).
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/signing-key/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the key that signs task tokens
         * @description Creates a new key that signs the task tokens of leases made a minute from now or later. Existing leases remain valid. Permission: `manage_workers` (admin).
         */
        post: operations["rotateSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/trace/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Trace a request
         * @description Returns the events of one request and the resources that it created or changed last. An unknown request id returns empty lists. Permission: `trace` (admin).
         */
        get: operations["traceRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all users
         * @description Permission: `manage_users` (admin).
         */
        get: operations["listUsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{email}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the API keys of a user
         * @description Lists what is known about the keys; a key itself is shown only when it is created. Permission: `manage_keys` (admin; operator, developer, viewer: their own only).
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description Creates a further key for the user. A repeat with the same Idempotency-Key fails with `CONFLICT`, because a key is shown only once. Permission: `manage_keys` (admin; operator, developer, viewer: their own only).
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{email}/keys/{prefix}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description The key stops working at once, and connections that were opened with it are closed. Permission: `manage_keys` (admin; operator, developer, viewer: their own only).
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{email}/keys/{prefix}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace an API key
         * @description Creates a new key and revokes the old one in the same step. Permission: `manage_keys` (admin; operator, developer, viewer: their own only).
         */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{email}/renew": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew an invitation
         * @description Creates a new token for a user who has not claimed their invitation. The old token stops working. Permission: `manage_users` (admin).
         */
        post: operations["renewInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{email}/role": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change a user's role
         * @description The last admin cannot be given another role (`CONFLICT`). Permission: `manage_users` (admin).
         */
        post: operations["setUserRole"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a user
         * @description Creates a user and an invitation: its token is exchanged for an API key with `claimInvitation`. A request with `api_key` creates no invitation, and takes no `expires_in`. Fails with `CONFLICT` if the user exists. Permission: `manage_users` (admin).
         */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a user
         * @description Revokes all API keys of the user at once. Their executions and jobs go on unless `kill` is true. The last admin cannot be revoked (`CONFLICT`). Permission: `manage_users` (admin).
         */
        post: operations["revokeUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whoami": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the current user
         * @description Returns the user, role, groups and rules of the API key that the request is made with. Permission: `know_self` (every role).
         */
        get: operations["whoami"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List workers
         * @description Lists the workers that were heard from within the last day and have not signed off. Permission: `read_queues` (every role).
         */
        get: operations["listWorkers"];
        put?: never;
        /**
         * Create a worker account
         * @description Creates an account with a key of its own, or with the `public_key` of the body. `role` other than worker, and `may`, need a `public_key`; `queues` needs the role worker. Permission: `manage_workers` (admin).
         */
        post: operations["createWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a worker account
         * @description The account's key stops working at once. What its workers run is run again elsewhere when their leases expire. Permission: `manage_workers` (admin).
         */
        delete: operations["revokeWorker"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{name}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drain a worker
         * @description Permission: `manage_workers` (admin).
         */
        post: operations["drainWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a drained worker
         * @description Permission: `manage_workers` (admin).
         */
        post: operations["resumeWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List worker accounts
         * @description Lists the accounts that workers sign in with, revoked ones included. Permission: `manage_workers` (admin).
         */
        get: operations["listWorkerAccounts"];
        put?: never;
        /**
         * Create a worker account
         * @description Creates an account with a key of its own, or with the `public_key` of the body. `role` other than worker, and `may`, need a `public_key`; `queues` needs the role worker. Permission: `manage_workers` (admin).
         */
        post: operations["createWorkerAccount"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/accounts/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a worker account
         * @description The account's key stops working at once. What its workers run is run again elsewhere when their leases expire. Permission: `manage_workers` (admin).
         */
        delete: operations["revokeWorkerAccount"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers/accounts/{name}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the key of a worker account
         * @description Creates a new key and revokes the old one in the same step. An account with a public key has none to replace (`CONFLICT`). Permission: `manage_workers` (admin).
         */
        post: operations["rotateWorkerKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Liveness probe
         * @description Responds as long as the process is alive; checks nothing else. Needs no API key.
         */
        get: operations["checkLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the metrics
         * @description Returns the metrics in the Prometheus text format. Permission: `metrics` (admin, operator, viewer). Needs no API key where the setting `metrics_public` is on.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readiness probe
         * @description Checks that the server accepts work: it is not stopping, and each of its dependencies responds. The body lists the dependencies with their last error. Needs no API key.
         */
        get: operations["checkReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description Tasks to add to a job.
         * @example {
         *       "tasks": [
         *         {
         *           "command": "make deploy",
         *           "taskId": "deploy"
         *         }
         *       ]
         *     }
         */
        AddTasksRequest: {
            defaults?: components["schemas"]["TaskDefaults"] | null;
            /** @description The tasks. They may depend on each other and on tasks of the job. */
            tasks: components["schemas"]["TaskRequest"][];
        };
        /** @description The result of adding tasks. */
        AddTasksResponse: {
            /**
             * Format: int64
             * @description How many tasks were added.
             */
            addedTasks: number;
            /** @description The job's id. */
            jobId: string;
            /**
             * Format: int64
             * @description How many tasks the job has now.
             */
            totalTasks: number;
        };
        /** @description The result of a test alert. */
        AlertTestResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The host that accepted the message. */
            place: string;
        };
        /** @description One call that changed something or was refused. */
        AuditEvent: {
            /** @description What was done, such as `users.create` or `executions.kill`. */
            action: string;
            /** @description The address that the request came from. */
            address?: string;
            /** @description When it happened. */
            at: components["schemas"]["Rfc3339"];
            /** @description The command that was to be run or killed, with the values of its secrets masked. */
            command?: string;
            /** @description Further details; never the value of a secret. */
            details?: unknown;
            /** @description What the event is about, such as `USER:ana@example.com` or `TASK:0192ab…`. */
            entity: string;
            /** @description The event's id. */
            event_id: string;
            /**
             * Format: int64
             * @description The event's number among the events of its entity.
             */
            number: number;
            /** @description The id of the request. */
            request_id: string;
            /** @description `ok`, or why it was refused. */
            result: string;
            /** @description The id of the execution, job or playbook that it was done to. */
            target?: string;
            /** @description Who did it: an e-mail address, or the part of the server that acted on its own. */
            user: string;
        };
        /** @description The result of a verification. */
        AuditVerification: {
            /**
             * Format: int64
             * @description How many events were checked.
             */
            checked: number;
            /** @description The time of the newest signed checkpoint that the trail was compared with. */
            checkpoint_at?: components["schemas"]["Rfc3339"];
            /**
             * Format: int64
             * @description How many records were compared with the events; present only with `state=1`.
             */
            compared?: number;
            /** @description The first event that is not as it was written. */
            first_bad?: components["schemas"]["BadEvent"];
            /** @description The first record that does not match the events. */
            first_mismatch?: components["schemas"]["Mismatch"];
            /**
             * @description Whether the trail is intact: no event was altered, removed or reordered, and compared
             *     records match the events.
             */
            ok: boolean;
            /**
             * Format: int64
             * @description The number of the first checkpoint that was not exported although later ones exist: either
             *     the export fails, which the server's log explains, or the exported file was cut.
             */
            unexported_from?: number;
            /**
             * Format: int64
             * @description How many executions and jobs an older version wrote, whose events hold no digest of them:
             *     their events are proved, but what they run and whose they are cannot be compared with these.
             */
            unverifiable?: number;
        };
        /** @description The check of users and ownerships. */
        AuthorizerStatus: {
            /**
             * @description Ownerships that are missing.
             * @default []
             */
            missing_ownerships: string[];
            /**
             * @description Ownerships of resources that do not exist.
             * @default []
             */
            orphaned_ownerships: string[];
            /**
             * @description Resources without an owner.
             * @default []
             */
            resources_with_missing_owners: string[];
            /**
             * Format: int64
             * @description How many resources were checked.
             * @default 0
             */
            total_resources_checked: number;
            /**
             * Format: int64
             * @description How many users were checked.
             * @default 0
             */
            total_users_checked: number;
            /**
             * @description Users with an unknown role.
             * @default []
             */
            users_with_invalid_roles: string[];
            /**
             * @description Users without a role.
             * @default []
             */
            users_with_missing_roles: string[];
        };
        /** @description Where to write a backup. */
        BackupRequest: {
            /** @description The directory to create: an absolute path on the server's machine that does not exist. */
            destination: string;
        };
        /** @description A backup that is complete and on disk. */
        BackupResponse: {
            /** @description The directory of the backup. */
            destination: string;
        };
        /** @description An event that is not as it was written. */
        BadEvent: {
            /** @description What the event is about, such as `USER:ana@example.com` or `TASK:0192ab…`. */
            entity: string;
            /** @description The event's id, if it is still known. */
            event_id?: string;
            /** @description What was found, as a sentence. */
            message: string;
            /**
             * Format: int64
             * @description The event's number among the events of its entity; 0 if the whole entity is affected.
             */
            number: number;
            /** @description `altered`, `removed`, `reordered` or `unreadable`. */
            problem: string;
        };
        /** @description The API key of a claimed invitation. */
        ClaimResponse: {
            /** @description The API key. It is shown only here. */
            api_key: components["schemas"]["Sensitive"];
            /** @description The result as a sentence. */
            message: string;
            /** @description The user that the key belongs to. */
            user_email: string;
        };
        /** @description The check of executions and locks. */
        ComputeStatus: {
            /**
             * Format: int64
             * @description How many belong to nothing.
             * @default 0
             */
            orphaned_count: number;
            /**
             * @description Their ids.
             * @default []
             */
            orphaned_resources: string[];
            /**
             * Format: int64
             * @description How many were recreated.
             * @default 0
             */
            recreated_count: number;
            /**
             * Format: int64
             * @description How many had their tags corrected.
             * @default 0
             */
            tag_updated_count: number;
            /**
             * Format: int64
             * @description How many were checked.
             * @default 0
             */
            total_resources: number;
            /**
             * Format: int64
             * @description How many are correct.
             * @default 0
             */
            verified_count: number;
        };
        /**
         * @description A job to submit.
         * @example {
         *       "name": "release",
         *       "tasks": [
         *         {
         *           "command": "make",
         *           "taskId": "build"
         *         },
         *         {
         *           "command": "make test",
         *           "dependsOn": [
         *             "build"
         *           ],
         *           "taskId": "test"
         *         }
         *       ]
         *     }
         */
        CreateJobRequest: {
            /**
             * Format: int32
             * @description How many of its tasks may run at the same time; default: any number.
             */
            concurrency?: number | null;
            defaults?: components["schemas"]["TaskDefaults"] | null;
            /** @description The job's name; need not be unique. */
            name?: string | null;
            /** @description A unique key of your choice; the same as the header `Idempotency-Key`. */
            requestId?: string | null;
            /** @description The tasks, from 1 to 20,000. */
            tasks: components["schemas"]["TaskRequest"][];
        };
        /** @description The job that was submitted. */
        CreateJobResponse: {
            /** @description The job's id. */
            jobId: string;
            /**
             * Format: int64
             * @description How many tasks have no dependencies.
             */
            rootTasks: number;
            /**
             * Format: int64
             * @description How many tasks the job has.
             */
            totalTasks: number;
        };
        /** @description An API key to create. */
        CreateKeyRequest: {
            /**
             * Format: int64
             * @description Seconds until it expires; default: never.
             */
            expires_in?: number | null;
            /** @description The key's name. */
            name?: string | null;
        };
        /** @description The API key that was created. */
        CreateKeyResponse: {
            /** @description The API key. It is shown only here. */
            api_key: components["schemas"]["Sensitive"];
            /** @description What is stored about it. */
            key: components["schemas"]["Key"];
            /** @description What happened to the server's file admin.key; absent if it did not have the revoked key. */
            key_file?: string;
            /** @description The result as a sentence. */
            message: string;
        };
        /**
         * @description A secret to create.
         * @example {
         *       "key_name": "DB_PASSWORD",
         *       "name": "db",
         *       "value": "correct horse"
         *     }
         */
        CreateSecretRequest: {
            /** @description What it is for. */
            description?: string | null;
            /** @description The environment variable that gets the value. */
            key_name: string;
            /** @description The secret's name. */
            name: string;
            /** @description Who else may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or `role:NAME`. */
            use_by?: string[] | null;
            /** @description The value, from 1 byte to 64 KiB. */
            value: components["schemas"]["Sensitive"];
        };
        /**
         * @description A user to create.
         * @example {
         *       "email": "ana@example.com",
         *       "role": "developer"
         *     }
         */
        CreateUserRequest: {
            api_key?: components["schemas"]["Sensitive"] | null;
            /**
             * @description Confirm a second user on a server that runs commands as its own operating-system user. The
             *     server then refuses commands until it is started with `--run-as-uids`, `--run-as`,
             *     `--no-worker` or `--allow-shared-uid`.
             */
            confirm?: boolean | null;
            /** @description The user's e-mail address. */
            email: string;
            /**
             * Format: int64
             * @description Seconds until the invitation expires, at most seven days; default: 15 minutes.
             */
            expires_in?: number | null;
            /**
             * @description The role: `admin`, `operator`, `developer` or `viewer`.
             * @enum {string}
             */
            role: "admin" | "operator" | "developer" | "viewer";
        };
        /** @description The user, with the token of the invitation. */
        CreateUserResponse: {
            /** @description The token of the invitation, shown only here; empty if the request had an `api_key`. */
            claim_token: components["schemas"]["Sensitive"];
            /** @description The user. */
            user: components["schemas"]["User"];
        };
        /**
         * @description A worker account to create.
         * @example {
         *       "name": "gpu-1",
         *       "queues": [
         *         "gpu"
         *       ]
         *     }
         */
        CreateWorkerRequest: {
            /**
             * @description Confirm a further account on a server that runs commands as its own operating-system user.
             *     The server then refuses commands, as with a second user.
             */
            confirm?: boolean | null;
            /** @description What the account is for: one line of at most 256 characters. */
            description?: string | null;
            /**
             * @description What a worker with a `public_key` may do besides running executions: `submit` them, and read
             *     and kill those.
             */
            may?: "submit"[] | null;
            /**
             * @description The account's name. Optional with `public_key`: the default is the name in the key's
             *     document, or the key's fingerprint.
             */
            name?: string;
            /**
             * @description A P-256 public key, whose owner signs tokens with the private key: PEM, or base58 of the key
             *     or of a JSON document with `name` and `public_key`. Default: the server creates an API key
             *     and shows it once.
             */
            public_key?: string | null;
            /** @description The queues that it may serve; default: all. Only with the role `worker`. */
            queues?: string[] | null;
            /**
             * @description The role; default: `worker`. Other roles need a `public_key`.
             * @enum {string|null}
             */
            role?: null | "worker" | "viewer" | "developer" | "operator";
        };
        /** @description A worker account that was created or got a new key. */
        CreateWorkerResponse: {
            /** @description The account. */
            account: components["schemas"]["WorkerAccount"];
            /** @description The API key, shown only here; absent for an account with a public key. */
            api_key?: components["schemas"]["Sensitive"];
            /** @description The result as a sentence. */
            message: string;
        };
        /** @description A dead letter: an execution that failed for good after its last attempt. */
        DeadLetter: {
            /**
             * Format: int32
             * @description How many attempts there were.
             */
            attempts: number;
            /** @description The command as it was submitted. */
            command: string;
            /** @description The user who submitted it. */
            created_by: string;
            /** @description Why the last attempt failed. */
            error: string;
            /** @description The kind of failure, such as `network` or `timeout`. */
            error_category?: string;
            /** @description The execution's id. */
            execution_id: string;
            /** @description When it became a dead letter. */
            failed_at: components["schemas"]["Rfc3339"];
            /** @description The job that it belongs to. */
            job_id?: string;
            /** @description The queue. */
            queue: string;
            /** @description The task in that job. */
            task_id?: string;
        };
        /** @description The result of deleting a secret. */
        DeleteSecretResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The secret's name. */
            name: string;
        };
        /** @description The server's own checks. */
        DoctorResponse: {
            /** @description The checks, in the order in which they were made. */
            probes: components["schemas"]["Probe"][];
        };
        /** @description The result of draining a worker or letting it take work again. */
        DrainWorkerResponse: {
            /** @description Whether it takes no new executions from now on. */
            draining: boolean;
            /** @description What happened, as text for people. */
            message: string;
            /** @description The worker's name. */
            name: string;
            /**
             * Format: int32
             * @description How many executions it is running.
             */
            running: number;
        };
        /** @description The limits of a run. An absent limit does not apply. */
        DryRunLimits: {
            /**
             * Format: int32
             * @description CPU units; 1024 are one vCPU.
             */
            cpu?: number;
            /**
             * Format: int64
             * @description The maximum size of the log in bytes.
             */
            log_bytes?: number;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number;
            /**
             * Format: int64
             * @description The maximum number of processes.
             */
            processes?: number;
        };
        /** @description What a run would do. Nothing was recorded. */
        DryRunResponse: {
            /**
             * @description Whether the run would be accepted: rules allow it, and its lock is free or `lock_wait` is
             *     set.
             */
            allowed: boolean;
            /** @description The program's arguments; with them it runs without a shell. */
            args?: string[];
            /** @description The shell command to run; with `args`, the program to run. */
            command: string;
            /**
             * Format: double
             * @description The cost of one hour in dollars.
             */
            cost_usd_per_hour?: number;
            /** @description The names of the environment variables from the request, without their values. */
            env: string[];
            /** @description The directory in the repository in which the command starts. */
            git_path?: string;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string;
            /** @description The Git repository to check out. */
            git_repo?: string;
            /** @description The image as it was registered. */
            image: string;
            /** @description The id of the image. */
            image_id: string;
            /** @description The limits of the command. */
            limits: components["schemas"]["DryRunLimits"];
            /** @description The lock to hold while the command runs. */
            lock?: string;
            /** @description The execution that holds the lock now; absent if it is free. */
            lock_held?: components["schemas"]["LockHeld"];
            /**
             * Format: int64
             * @description How many seconds to wait for the lock.
             */
            lock_wait?: number;
            /** @description The playbook, as `NAME@VERSION`. */
            playbook?: string;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority: number;
            /** @description The queue. */
            queue: string;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix.
             */
            retries: number;
            /** @description Every rule that was considered, in order. */
            rules: components["schemas"]["Verdict"][];
            /** @description The secrets that the command would get. */
            secrets: components["schemas"]["DryRunSecret"][];
            /**
             * Format: int64
             * @description The timeout in seconds.
             */
            timeout?: number;
            /** @description What the execution would wait for, if no worker can run it now. */
            waiting_for?: components["schemas"]["Reason"];
        };
        /** @description A secret that a run would get. */
        DryRunSecret: {
            /** @description The environment variable that gets the value. */
            key_name: string;
            /** @description The secret's name. */
            name: string;
        };
        /**
         * @description What a rule does with what it matches.
         * @enum {string}
         */
        Effect: "allow" | "deny";
        /** @description The body of every error. */
        Error: {
            /**
             * @description What failed, for programs.
             * @enum {string}
             */
            code: "INVALID_REQUEST" | "UNAUTHORIZED" | "INVALID_API_KEY" | "API_KEY_REVOKED" | "FORBIDDEN" | "NOT_FOUND" | "SECRET_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "CONFLICT" | "LOCK_HELD" | "SECRET_ALREADY_EXISTS" | "PAYLOAD_TOO_LARGE" | "RATE_LIMITED" | "INTERNAL_ERROR" | "DATABASE_ERROR" | "SERVICE_UNAVAILABLE";
            /** @description With `CONFLICT`: the same request with `"confirm": true` in its body is accepted. */
            confirm?: boolean;
            /** @description Why, or what to do next; may be empty. */
            details: string;
            /** @description What failed, as a sentence. */
            error: string;
            /** @description The execution that holds it. */
            execution_id?: string;
            /** @description The user whose execution holds it. */
            held_by?: string;
            /** @description The lock's name. */
            lock_name?: string;
            /** @description The web page of that execution's log, without a token. */
            log_url?: string;
            /** @description Since when it is held. */
            since?: components["schemas"]["Rfc3339"];
        };
        /** @description An immutable record of something that happened, with its index keys. */
        Event: {
            /** @description Where it comes from */
            context: {
                [key: string]: unknown;
            };
            /** @description The id of that entity */
            entityId: string;
            /** @description The type of the entity that it is about */
            entityType: string;
            /** @description What happened */
            eventType: string;
            /** @description Its number among the events of its entity */
            number: number;
            /** @description Further details, by type */
            properties: {
                [key: string]: unknown;
            };
            /** @description When it was recorded, in Unix milliseconds */
            receivedAt: number;
            /** @description The tenant */
            tenantId: string;
            /** @description When it happened, in Unix milliseconds */
            timestamp: number;
        } & {
            [key: string]: unknown;
        };
        /** @description An execution. */
        Execution: {
            /** @description The program's arguments, if it runs without a shell. */
            args?: string[];
            /**
             * Format: int32
             * @description How many attempts were started.
             */
            attempt: number;
            /** @description Where it runs: `LOCAL` or `AWS`. */
            cloud?: string;
            /** @description The command as it was submitted. */
            command: string;
            /** @description When it finished. */
            completed_at?: components["schemas"]["Rfc3339"];
            /**
             * Format: double
             * @description The cost in dollars.
             */
            cost_usd?: number;
            /** @description The user who submitted it. */
            created_by: string;
            /** @description The id of the request that created it. */
            created_by_request_id: string;
            /** @description Whether it is a dead letter: it failed for good and was not run again. */
            dead?: boolean;
            /**
             * Format: int64
             * @description Whole seconds from start to finish.
             */
            duration_seconds?: number;
            /** @description Why it finished. */
            end_reason?: components["schemas"]["Reason"];
            /** @description The execution's id. */
            execution_id: string;
            /**
             * Format: int32
             * @description The exit code; null until it finishes.
             */
            exit_code: number | null;
            /** @description The machine that it ran on. */
            host?: string;
            /** @description The id of the image. */
            image_id: string;
            /** @description The job that it belongs to. */
            job_id?: string;
            /** @description Labels to find it by. */
            labels: {
                [key: string]: string;
            };
            /** @description The lock that it holds, held or waits for. */
            lock_name?: string;
            /** @description The CloudWatch log stream that the log is copied to. */
            log_stream_name?: string;
            /** @description The id of the request that changed it last. */
            modified_by_request_id: string;
            /** @description The users that own it. */
            owned_by: string[];
            /** @description The queue. */
            queue: string;
            /** @description The execution that a redrive created; absent if its job creates it. */
            redriven_as?: string;
            /** @description The runner: `process`, `container` or `fargate`. */
            runner?: string;
            /** @description When the command started; until then, when it was submitted. */
            started_at: components["schemas"]["Rfc3339"];
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            /** @description When it was submitted. */
            submitted_at?: components["schemas"]["Rfc3339"];
            /** @description The ARN of the ECS task. */
            task_arn?: string;
            /** @description The task in that job. */
            task_id?: string;
            /** @description Whether it runs on a pseudo-terminal, with its output as one stream. */
            terminal?: boolean;
            /** @description Why it is queued. */
            waiting_for?: components["schemas"]["Reason"];
            /** @description The worker that ran it. */
            worker_id?: string;
            /** @description The labels that a worker must have to run it. */
            worker_labels: {
                [key: string]: string;
            };
            /**
             * @description Whether its worker has been silent for longer than the lease; the command may still be
             *     running.
             */
            worker_unreachable?: boolean;
        };
        /** @description An access decision, explained. */
        Explanation: {
            /** @description The action. */
            action: string;
            /** @description Whether the action would be allowed. */
            allowed: boolean;
            /** @description The user's role. */
            role: string;
            /** @description What decided: the name of a rule, or `role:NAME`. */
            rule: string;
            /** @description Every rule that was considered, in order. */
            rules: components["schemas"]["Verdict"][];
            /** @description The user that the decision is about. */
            user: string;
            /** @description Why, as a sentence. */
            why: string;
        };
        /** @description A group. */
        Group: {
            /** @description When it was created. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who created it. */
            created_by: string;
            /** @description The e-mail addresses of the members, in alphabetical order. */
            members: string[];
            /** @description The group's name. */
            name: string;
        };
        /** @description The result of saving or deleting a group. */
        GroupResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The group's name. */
            name: string;
        };
        /** @description A list of groups. */
        GroupsResponse: {
            /** @description The groups. */
            groups: components["schemas"]["Group"][];
        };
        /** @description The server's health. */
        Health: {
            /** @description Where commands run: `local` or `aws`. */
            provider: string;
            /** @description The AWS region. */
            region?: string;
            /** @description Always `ok`. */
            status: string;
            /** @description The server's version. */
            version: string;
        };
        /**
         * @description The health of a running execution.
         * @enum {string}
         */
        HealthWord: "healthy" | "warning" | "critical" | "overtime";
        /** @description A line that matches. */
        Hit: {
            /**
             * Format: int64
             * @description The line's number.
             */
            line: number;
            /** @description The line's text. Invalid UTF-8 is replaced. */
            message: string;
        };
        /** @description The check of IAM roles. */
        IdentityStatus: {
            /**
             * Format: int64
             * @description How many other roles images use.
             * @default 0
             */
            custom_roles_total: number;
            /**
             * Format: int64
             * @description How many of the other roles exist.
             * @default 0
             */
            custom_roles_verified: number;
            /**
             * @description Whether the default roles exist.
             * @default false
             */
            default_roles_verified: boolean;
            /**
             * @description The roles that do not exist.
             * @default []
             */
            missing_roles: string[];
        };
        /** @description A registered image. */
        Image: {
            /**
             * Format: int32
             * @description CPU units; 1024 are one vCPU.
             */
            cpu?: number;
            /** @description When it was registered. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who registered it; absent for the built-in image. */
            created_by?: string;
            /** @description The id of the request that registered it. */
            created_by_request_id: string;
            /** @description The reference as it was registered: `[registry/]name[:tag]`. */
            image: string;
            /** @description The image's id. */
            image_id: string;
            /** @description The name without registry and tag. */
            image_name?: string;
            /** @description The registry. */
            image_registry?: string;
            /** @description The tag. */
            image_tag?: string;
            /** @description Whether it is the default image. */
            is_default?: boolean;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number;
            /** @description The id of the request that changed it last. */
            modified_by_request_id: string;
            /** @description The users that own it. */
            owned_by: string[];
            /** @description The runners that can run it: `process`, `container`, `fargate`. */
            runners: string[];
            /** @description The platform: `Linux/X86_64` or `Linux/ARM64`. */
            runtime_platform?: string;
            /** @description The name of the ECS task definition. */
            task_definition_name?: string;
            /** @description The IAM role that starts the ECS task. */
            task_execution_role_name?: string;
            /** @description The IAM role of the command. */
            task_role_name?: string;
        };
        /** @description The result of registering or unregistering an image. */
        ImageResponse: {
            /** @description The image as the request named it. */
            image: string;
            /** @description The image's id. */
            image_id?: string;
            /** @description The result as a sentence. */
            message: string;
        };
        /** @description A list of images. */
        ImagesResponse: {
            /** @description The images, by id. */
            images: components["schemas"]["Image"][];
        };
        /** @description A job. Lists of jobs, and `tasks=0`, leave out `tasks`. */
        Job: {
            /** @description When it was completed or cancelled. */
            completedAt?: components["schemas"]["Rfc3339"];
            /**
             * Format: int32
             * @description How many of its tasks may run at the same time; default: any number.
             */
            concurrency?: number;
            /** @description When it was submitted. */
            createdAt: components["schemas"]["Rfc3339"];
            /** @description The user who submitted it. */
            createdBy: string;
            /** @description The first task that failed since the last resume. */
            failedTaskId?: string;
            /** @description The job's id. */
            jobId: string;
            /** @description The job's name; need not be unique. */
            name?: string;
            /** @description The idempotency key that it was submitted with. */
            requestId?: string;
            /** @description The job's status. */
            status: components["schemas"]["JobStatus"];
            /** @description How many tasks are in each state. */
            taskCounts: components["schemas"]["TaskCounts"];
            /** @description The tasks, in the order in which they were submitted. */
            tasks?: components["schemas"]["Task"][];
            /**
             * Format: int64
             * @description How many tasks the job has.
             */
            totalTasks: number;
        };
        /** @description The result of resuming or cancelling a job. */
        JobResponse: {
            /** @description The job's id. */
            jobId: string;
            /** @description The result as a sentence. */
            message: string;
            /** @description The job's status. */
            status: components["schemas"]["JobStatus"];
        };
        /**
         * @description The status of a job.
         * @enum {string}
         */
        JobStatus: "RUNNING" | "FAILED" | "COMPLETED" | "CANCELLED";
        /** @description What is known about an API key. The key itself is not stored. */
        Key: {
            /** @description When it was created. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description When it expires; absent: never. */
            expires_at?: components["schemas"]["Rfc3339"];
            /** @description When it was last used, to the minute. */
            last_used?: components["schemas"]["Rfc3339"];
            /** @description The key's name. */
            name?: string;
            /** @description The first characters of the key, unique among the keys of its user. */
            prefix: string;
            /** @description Whether it was revoked. */
            revoked: boolean;
        };
        /** @description The API keys of a user. */
        KeysResponse: {
            /** @description The keys, oldest first. */
            keys: components["schemas"]["Key"][];
        };
        /** @description How to kill an execution. */
        KillRequest: {
            /** @description Send SIGKILL at once, without SIGTERM and the grace period. */
            force?: boolean;
        };
        /** @description The result of a kill. */
        KillResponse: {
            /** @description The execution's id. */
            execution_id: string;
            /** @description The result as a sentence. */
            message: string;
        };
        /** @description A part of a log as text. */
        LinkedLog: {
            /** @description Whether the execution has finished and these are its last lines. */
            completed: boolean;
            /** @description The execution's id. */
            execution_id: string;
            /**
             * @description The next `since`: the time of the last line, or the `since` of the request if there are no
             *     newer lines. Absent if the log is empty.
             */
            last_timestamp?: components["schemas"]["Rfc3339"];
            /** @description The lines after `since` as one text, each with a newline at its end. */
            logs: string;
            /** @description The execution's status. */
            status: components["schemas"]["Status"];
        };
        /** @description A signed link to a log. */
        LinkResponse: {
            /** @description The execution whose log it opens. */
            execution_id: string;
            /** @description When it expires. It stops working earlier if the key or user that created it is revoked. */
            expires_at: components["schemas"]["Rfc3339"];
            /** @description The token alone, for `Authorization: Bearer`. */
            token: components["schemas"]["Sensitive"];
            /** @description The address of the web page, with the token in its fragment. */
            url: components["schemas"]["Sensitive"];
        };
        /** @description A lock that an execution holds. */
        Lock: {
            /** @description The execution that holds it. */
            execution_id: string;
            /** @description The user whose execution holds it. */
            held_by: string;
            /** @description The lock's name. */
            lock_name: string;
            /** @description Since when it is held. */
            since: components["schemas"]["Rfc3339"];
            /**
             * Format: int64
             * @description How many executions wait for it.
             */
            waiters: number;
        };
        /** @description The execution that holds a lock. */
        LockHeld: {
            /** @description The execution that holds it. */
            execution_id: string;
            /** @description The user whose execution holds it. */
            held_by: string;
            /** @description The lock's name. */
            lock_name: string;
            /** @description The web page of that execution's log, without a token. */
            log_url: string;
            /** @description Since when it is held. */
            since: components["schemas"]["Rfc3339"];
        };
        /** @description One line of a log. The WebSocket sends each line as one text message of this form. */
        LogEvent: {
            /**
             * Format: int32
             * @description The attempt that wrote it; 0 for lines of the server.
             */
            attempt: number;
            /** @description Whether it continues the line before it. */
            cont?: boolean;
            /** @description Whether a newline ends it; absent: true. */
            eol?: boolean;
            /** @description A unique id, `<execution>-<line>`; a client resumes after it. */
            event_id: string;
            /** @description Whether it arrived after its attempt had lost its lease. */
            late?: boolean;
            /**
             * Format: int64
             * @description The line's number, counted from 1 over all attempts.
             */
            line: number;
            /** @description The text. Invalid UTF-8 is replaced; `message_b64` then has the exact bytes. */
            message: string;
            /** @description The exact bytes in base64, if they are not UTF-8. */
            message_b64?: string;
            /** @description The stream: `stdout`, `stderr` or `platform`. */
            stream: string;
            /**
             * Format: int64
             * @description The time in Unix milliseconds.
             */
            timestamp: number;
        };
        /** @description The log of an execution. */
        LogsResponse: {
            /** @description The lines; null while the execution runs, unless the request selects lines. */
            events: components["schemas"]["LogEvent"][] | null;
            /** @description The execution's id. */
            execution_id: string;
            /**
             * Format: int64
             * @description The number of the line after the last one returned.
             */
            next_line: number;
            /** @description The execution's status. */
            status: components["schemas"]["Status"];
            /** @description Where to follow the log; absent once the execution has finished. */
            websocket_url?: string;
        };
        /** @description A record that does not match the events. */
        Mismatch: {
            /** @description The record, such as `TASK:0192ab…`, `JOB:0192ab…` or `LOCK:deploy`. */
            entity: string;
            /** @description The field that differs, such as `status` or `tasks.build.phase`. */
            field: string;
            /** @description What the record says and what the events say, as a sentence. */
            message: string;
        };
        /** @description A dead letter that does not run again. */
        NotRedriven: {
            /** @description Why not. */
            error: string;
            /** @description The dead letter's execution id. */
            execution_id: string;
        };
        /** @description A parameter of a playbook. */
        Parameter: {
            /** @description What a value may contain that is refused otherwise. */
            allow?: components["schemas"]["ParameterAllowance"][];
            /** @description The possible values of a choice. */
            choices?: string[];
            /** @description The value of a run that does not give one; without a default, a run must give one. */
            default?: unknown;
            /** @description What the parameter is for. */
            description?: string | null;
            /**
             * Format: int64
             * @description The maximum of a number.
             */
            max?: number | null;
            /**
             * Format: int32
             * @description The maximum number of characters of a text.
             */
            max_length?: number | null;
            /**
             * Format: int64
             * @description The minimum of a number.
             */
            min?: number | null;
            /** @description A pattern with `*` and `?` that a text must match as a whole. */
            pattern?: string | null;
            /** @description A regular expression that a text must match as a whole. */
            regex?: string | null;
            /** @description The type of the value. */
            type?: components["schemas"]["ParameterType"];
        };
        /**
         * @description What a value may contain only if its parameter allows it.
         * @enum {string}
         */
        ParameterAllowance: "leading_dash" | "control";
        /**
         * @description The type of a parameter.
         * @enum {string}
         */
        ParameterType: "string" | "integer" | "boolean" | "choice";
        /** @description One version of a playbook. */
        Playbook: components["schemas"]["PlaybookTerms"] & {
            /** @description When this version was saved. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who saved it. */
            created_by?: string;
            /** @description The id of the request that saved it. */
            created_by_request_id?: string;
            /** @description The playbook's name. */
            name: string;
            /**
             * Format: int32
             * @description The version, counted from 1.
             */
            version: number;
        };
        /** @description A list of playbooks, each in its newest version. */
        PlaybooksResponse: {
            /** @description The playbooks that you may run or manage. */
            playbooks: components["schemas"]["Playbook"][];
        };
        /** @description What a playbook does. */
        PlaybookTerms: {
            /**
             * @description The program's arguments. With them, even with an empty list, no shell is used. `{{name}}` is
             *     replaced by the value of that parameter; each argument stays one argument.
             */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command: string;
            /** @description What the playbook is for. */
            description?: string | null;
            /** @description Environment variables. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image at the time of the run. */
            image?: string | null;
            /** @description Labels to find its executions by. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while the command runs. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: fail at once if it is held.
             */
            lock_wait?: number | null;
            /**
             * @description The parameters of a run, by name. Values reach the command as data, never as part of a shell
             *     text.
             */
            parameters?: {
                [key: string]: components["schemas"]["Parameter"];
            };
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[];
            /** @description Run it on a pseudo-terminal without input; its output is one stream. */
            terminal?: boolean;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it. */
            worker_labels?: {
                [key: string]: string;
            };
        };
        /** @description One check. */
        Probe: {
            /** @description What was found, and what to do if something is wrong. */
            detail: string;
            /** @description What was checked, such as `disk`, `store` or `worker`. */
            name: string;
            /** @description The result. */
            status: components["schemas"]["ProbeStatus"];
        };
        /**
         * @description The result of a check.
         * @enum {string}
         */
        ProbeStatus: "ok" | "warn" | "fail";
        /**
         * @description A group to create or replace.
         * @example {
         *       "members": [
         *         "ana@example.com"
         *       ],
         *       "name": "ops"
         *     }
         */
        PutGroupRequest: {
            /** @description The e-mail addresses of all members. */
            members?: string[] | null;
            /** @description The group's name. */
            name: string;
        };
        /**
         * @description What a playbook does.
         * @example {
         *       "args": [
         *         "{{region}}"
         *       ],
         *       "command": "./deploy.sh",
         *       "parameters": {
         *         "region": {
         *           "choices": [
         *             "eu",
         *             "us"
         *           ],
         *           "default": "eu",
         *           "type": "choice"
         *         }
         *       }
         *     }
         */
        PutPlaybookRequest: {
            /**
             * @description The program's arguments. With them, even with an empty list, no shell is used. `{{name}}` is
             *     replaced by the value of that parameter; each argument stays one argument.
             */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command: string;
            /** @description What the playbook is for. */
            description?: string | null;
            /** @description Environment variables. */
            env?: {
                [key: string]: string;
            } | null;
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image at the time of the run. */
            image?: string | null;
            /** @description Labels to find its executions by. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A lock to hold while the command runs. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: fail at once if it is held.
             */
            lock_wait?: number | null;
            /**
             * @description The parameters of a run, by name. Values reach the command as data, never as part of a shell
             *     text.
             */
            parameters?: {
                [key: string]: components["schemas"]["Parameter"];
            } | null;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[] | null;
            /** @description Run it on a pseudo-terminal without input; its output is one stream. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it. */
            worker_labels?: {
                [key: string]: string;
            } | null;
        };
        /** @description The result of saving a playbook. */
        PutPlaybookResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The playbook's name. */
            name: string;
            /**
             * Format: int32
             * @description The version that was saved.
             */
            version: number;
        };
        /**
         * @description Settings of a queue to change. Absent settings are kept.
         * @example {
         *       "concurrency": 4,
         *       "per_user": 2
         *     }
         */
        PutQueueRequest: {
            /**
             * Format: int32
             * @description How many of its executions may run at the same time, from 1 to 1000; 0 removes the limit.
             */
            concurrency?: number | null;
            /** @description Whether to pause the queue. */
            paused?: boolean | null;
            /**
             * Format: int32
             * @description How many of its executions may run at the same time per user, from 1 to 1000; 0 removes the
             *     limit.
             */
            per_user?: number | null;
            /** @description Why it is paused; only together with `paused: true`. */
            reason?: string | null;
        };
        /**
         * @description A rule that narrows a role. All lists are optional.
         * @example {
         *       "commands": [
         *         "rm *"
         *       ],
         *       "effect": "deny",
         *       "name": "no-rm",
         *       "reason": "Ask an operator.",
         *       "roles": [
         *         "developer"
         *       ]
         *     }
         */
        PutRuleRequest: {
            /** @description Patterns of commands, with `*` and `?`. */
            commands?: string[];
            /** @description `allow` or `deny`. */
            effect: components["schemas"]["Effect"];
            /** @description The groups that it applies to. */
            groups?: string[];
            /** @description Patterns of images, with `*` and `?`. */
            images?: string[];
            /** @description Patterns of locks, with `*` and `?`. */
            locks?: string[];
            /** @description The rule's name. */
            name: string;
            /** @description Patterns of playbooks, with `*` and `?`. */
            playbooks?: string[];
            /** @description Patterns of queues, with `*` and `?`. */
            queues?: string[];
            /** @description The reason for the rule, shown to users whom it refuses. */
            reason?: string | null;
            /**
             * @description The roles that it applies to, never admin. Without users, groups and roles it applies to
             *     everyone but admins.
             */
            roles?: ("operator" | "developer" | "viewer" | "worker")[];
            /** @description Patterns of secrets, with `*` and `?`. */
            secrets?: string[];
            /** @description The users that it applies to: e-mail addresses, or `worker:NAME`. */
            users?: string[];
        };
        /** @description A queue. */
        Queue: {
            /**
             * Format: int32
             * @description How many of its executions may run at the same time; absent: any number.
             */
            concurrency?: number;
            /**
             * Format: int64
             * @description How many dead letters it has.
             */
            dead: number;
            /**
             * Format: int64
             * @description How many executions wait in it.
             */
            depth: number;
            /**
             * Format: int64
             * @description How many executions are leased by a worker.
             */
            in_flight: number;
            /** @description The queue's name. */
            name: string;
            /** @description When the oldest waiting execution was queued. */
            oldest?: components["schemas"]["Rfc3339"];
            /** @description Present if the queue is paused: no worker leases from it; running executions go on. */
            paused?: components["schemas"]["QueuePause"];
            /**
             * Format: int32
             * @description How many of its executions may run at the same time per user; absent: any number.
             */
            per_user?: number;
            /**
             * Format: int64
             * @description How many executions count towards its limits now; absent if it has none.
             */
            places_taken?: number;
            /**
             * Format: int64
             * @description How many online workers serve it.
             */
            workers: number;
        };
        /** @description Who paused a queue, and why. */
        QueuePause: {
            /** @description When it was paused. */
            at: components["schemas"]["Rfc3339"];
            /** @description The user who paused it. */
            by: string;
            /** @description Why it was paused. */
            reason?: string;
        };
        /** @description The settings of a queue. */
        QueueTermsResponse: {
            /**
             * Format: int32
             * @description How many of its executions may run at the same time; absent: any number.
             */
            concurrency?: number;
            /** @description The result as a sentence. */
            message: string;
            /** @description The queue's name. */
            name: string;
            /** @description Present if the queue is paused. */
            paused?: components["schemas"]["QueuePause"];
            /**
             * Format: int32
             * @description How many of its executions may run at the same time per user; absent: any number.
             */
            per_user?: number;
        };
        /** @description Why an execution finished, or why it is queued. */
        Reason: {
            /** @description The reason for programs, such as `exit`, `timeout` or `lock`. */
            code: string;
            /** @description The reason as a sentence. */
            message: string;
        };
        /** @description One finding. */
        ReconcileIssue: {
            /** @description What was done: `repaired`, `reported` or `requires_manual_intervention`. */
            action: string;
            /** @description What was found, as a sentence. */
            message: string;
            /** @description Their ids. */
            resource_id: string;
            /** @description The type of the resource, such as `execution`, `lock`, `user` or `secret`. */
            resource_type: string;
            /** @description `error` or `warning`. */
            severity: string;
        };
        /** @description What a reconciliation checked, found and repaired. */
        ReconcileReport: {
            /** @description The check of users and ownerships. */
            authorizer_status: components["schemas"]["AuthorizerStatus"];
            /** @description The check of executions and locks. */
            compute_status: components["schemas"]["ComputeStatus"];
            /**
             * Format: int64
             * @description How many findings could not be repaired.
             */
            error_count: number;
            /** @description The check of IAM roles. */
            identity_status: components["schemas"]["IdentityStatus"];
            /** @description The findings. */
            issues: components["schemas"]["ReconcileIssue"][];
            /**
             * Format: int64
             * @description How many findings were repaired.
             */
            reconciled_count: number;
            /** @description The check of secrets. */
            secrets_status: components["schemas"]["SecretsStatus"];
            /** @description When the check was made. */
            timestamp: components["schemas"]["Rfc3339"];
        };
        /** @description The result of a reconciliation. */
        ReconcileResponse: {
            /** @description The report. */
            report: components["schemas"]["ReconcileReport"];
            /** @description Always `ok`. */
            status: string;
        };
        /** @description Whose admin access to recover. */
        RecoverRequest: {
            /** @description The user who becomes an admin; default: the first admin. */
            email?: string | null;
        };
        /** @description The recovered access. */
        RecoverResponse: {
            /** @description The new API key. It is shown only here. */
            api_key: components["schemas"]["Sensitive"];
            /** @description The user's e-mail address. */
            email: string;
        };
        /** @description A dead letter that runs again. */
        Redriven: {
            /** @description The dead letter's execution id. */
            execution_id: string;
            /** @description The job that was resumed for it. */
            job_id?: string;
            /** @description The id of the new execution; absent if a job creates it later. */
            new_execution_id?: string;
        };
        /** @description Which dead letters to run again. */
        RedriveRequest: {
            /**
             * @description Continue after an earlier request: the `next` of its response. Not together with
             *     `execution_ids`.
             */
            after?: string | null;
            /**
             * @description The dead letters to run again, at most 50; default: the oldest ones, as many as fit in one
             *     request.
             */
            execution_ids?: string[] | null;
        };
        /** @description The result of a redrive. */
        RedriveResponse: {
            /** @description The dead letters that can never run again, and were removed from the list. */
            dropped: components["schemas"]["NotRedriven"][];
            /**
             * Format: int64
             * @description How many dead letters are left for further requests, counted up to 10,000.
             */
            left: number;
            /** @description The result as a sentence. */
            message: string;
            /** @description The `after` of the next request; absent if none are left. */
            next?: string;
            /** @description The queue's name. */
            queue: string;
            /** @description The dead letters that run again. */
            redriven: components["schemas"]["Redriven"][];
            /** @description The dead letters that cannot run again now, and remain dead letters. */
            refused: components["schemas"]["NotRedriven"][];
        };
        /**
         * @description An image to register.
         * @example {
         *       "image": "alpine:3.20"
         *     }
         */
        RegisterImageRequest: {
            /**
             * Format: int32
             * @description CPU units; 1024 are one vCPU.
             */
            cpu?: number | null;
            /** @description The reference: `[registry/]name[:tag]`. */
            image: string;
            /** @description Whether to make it the default image. */
            is_default?: boolean | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number | null;
            /** @description The platform: `Linux/X86_64` or `Linux/ARM64`. */
            runtime_platform?: string | null;
            /** @description The IAM role that starts the ECS task. */
            task_execution_role_name?: string | null;
            /** @description The IAM role of the command. */
            task_role_name?: string | null;
        };
        /** @description The resources that a request created or changed last. Secrets have no values here. */
        RelatedResources: {
            /** @description Executions. */
            executions: components["schemas"]["Execution"][];
            /** @description Groups. */
            groups: components["schemas"]["Group"][];
            /** @description Images. */
            images: components["schemas"]["Image"][];
            /** @description Playbooks. */
            playbooks: components["schemas"]["Playbook"][];
            /** @description Rules. */
            rules: components["schemas"]["Rule"][];
            /** @description Secrets. */
            secrets: components["schemas"]["Secret"][];
            /** @description Users. */
            users: components["schemas"]["User"][];
        };
        /** @description The result of releasing a lock. */
        ReleaseResponse: {
            /** @description The lock's name. */
            lock_name: string;
            /** @description The result as a sentence; names the execution that holds the lock now. */
            message: string;
        };
        /** @description The result of deleting a playbook. */
        RemovePlaybookResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The playbook's name. */
            name: string;
        };
        /** @description An invitation to renew. */
        RenewInvitationRequest: {
            /**
             * Format: int64
             * @description Seconds until the invitation expires, at most seven days; default: 15 minutes.
             */
            expires_in?: number | null;
        };
        /** @description Changes of tasks for a job that is resumed. */
        ResumeJobRequest: {
            /** @description Tasks that run something else from now on: failed ones, and those that wait for them. */
            tasks?: components["schemas"]["TaskChange"][] | null;
        };
        /** @description The result of revoking an API key. */
        RevokeKeyResponse: {
            /** @description What happened to the server's file admin.key; absent if it did not have the revoked key. */
            key_file?: string;
            /** @description The result as a sentence. */
            message: string;
            /** @description The first characters of the key. */
            prefix: string;
        };
        /** @description A user to revoke. */
        RevokeUserRequest: {
            /**
             * Format: email
             * @description The user's e-mail address.
             */
            email: string;
            /** @description Whether to kill the user's executions and cancel their jobs; default: they go on. */
            kill?: boolean | null;
        };
        /** @description The result of revoking a user. */
        RevokeUserResponse: {
            /**
             * Format: int64
             * @description How many of the user's jobs were cancelled.
             */
            cancelled_jobs: number;
            /** @description The user's e-mail address. */
            email: string;
            /**
             * Format: int64
             * @description How many of the user's executions are being killed.
             */
            killed_executions: number;
            /** @description The result as a sentence. */
            message: string;
            /**
             * Format: int64
             * @description How many of the user's executions go on.
             */
            open_executions: number;
            /**
             * Format: int64
             * @description How many of the user's jobs go on and start tasks.
             */
            open_jobs: number;
        };
        /** @description The result of revoking a worker account. */
        RevokeWorkerResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The account's name. */
            name: string;
        };
        /**
         * Format: date-time
         * @description A time in UTC with milliseconds, such as `2026-01-03T14:22:19.640Z`.
         */
        Rfc3339: string;
        /** @description The result of rotating the key that encrypts secrets. */
        RotateSealingKeyResponse: {
            /** @description The id of the new key. */
            key_id: string;
            /** @description The result as a sentence. */
            message: string;
            /**
             * Format: int64
             * @description How many secrets were encrypted again.
             */
            resealed: number;
        };
        /** @description The result of rotating the key that signs task tokens. */
        RotateSigningKeyResponse: {
            /** @description The id of the new key: its creation time in Unix milliseconds. */
            key_id: string;
            /** @description The result as a sentence. */
            message: string;
        };
        /** @description A rule that narrows a role. All lists are optional. */
        Rule: {
            /** @description Patterns of commands, with `*` and `?`. */
            commands?: string[];
            /** @description `allow` or `deny`. */
            effect: components["schemas"]["Effect"];
            /** @description The groups that it applies to. */
            groups?: string[];
            /** @description Patterns of images, with `*` and `?`. */
            images?: string[];
            /** @description Patterns of locks, with `*` and `?`. */
            locks?: string[];
            /** @description The rule's name. */
            name: string;
            /** @description Patterns of playbooks, with `*` and `?`. */
            playbooks?: string[];
            /** @description Patterns of queues, with `*` and `?`. */
            queues?: string[];
            /** @description The reason for the rule, shown to users whom it refuses. */
            reason?: string | null;
            /**
             * @description The roles that it applies to, never admin. Without users, groups and roles it applies to
             *     everyone but admins.
             */
            roles?: string[];
            /** @description Patterns of secrets, with `*` and `?`. */
            secrets?: string[];
            /** @description The users that it applies to: e-mail addresses, or `worker:NAME`. */
            users?: string[];
        };
        /** @description The result of saving or deleting a rule. */
        RuleResponse: {
            /** @description The result as a sentence. */
            message: string;
            /** @description The rule's name. */
            name: string;
        };
        /** @description A list of rules, in the order in which they are evaluated. */
        RulesResponse: {
            /** @description The rules. */
            rules: components["schemas"]["Rule"][];
        };
        /**
         * @description A run of a playbook.
         * @example {
         *       "parameters": {
         *         "region": "eu"
         *       }
         *     }
         */
        RunPlaybookRequest: {
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: fail at once if it is held.
             */
            lock_wait?: number | null;
            /** @description The values by parameter. A text is converted to the type of the parameter. */
            parameters?: Record<string, unknown> | null;
            /**
             * Format: int32
             * @description The version; default: the newest.
             */
            version?: number | null;
        };
        /**
         * @description A command to run. Unknown fields are ignored, except those that look like a misspelled one: they
         *     are refused.
         * @example {
         *       "command": "make test",
         *       "env": {
         *         "CI": "true"
         *       },
         *       "labels": {
         *         "team": "core"
         *       },
         *       "timeout": 600
         *     }
         */
        RunRequest: {
            /** @description The program's arguments. With them, even with an empty list, no shell is used. */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command: string;
            /** @description Environment variables. */
            env?: {
                [key: string]: string;
            } | null;
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image. */
            image?: string | null;
            /** @description Labels to find it by. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A lock to hold while the command runs. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: fail at once if it is held.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[] | null;
            /**
             * @description Run it on a pseudo-terminal without input; its output is one stream. Only with the image
             *     `local`.
             */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it. */
            worker_labels?: {
                [key: string]: string;
            } | null;
        };
        /** @description The execution that was submitted. */
        RunResponse: {
            /** @description The command as it was submitted. */
            command: string;
            /** @description The execution's id. */
            execution_id: string;
            /** @description The id of the image. */
            image_id: string;
            /** @description The address of the execution's web page. */
            log_url: string;
            /** @description The status at the time of the response. */
            status: components["schemas"]["Status"];
            /** @description The WebSocket address to follow the log at, with a ticket that is valid for ten minutes. */
            websocket_url?: string;
        };
        /** @description The result of creating or changing a secret. */
        SaveSecretResponse: {
            /** @description The result as a sentence. */
            message: string;
        };
        /** @description The result of a search. */
        SearchResponse: {
            /**
             * @description False if the search reached its time limit before the end of the log: continue at
             *     `next_line`.
             */
            complete: boolean;
            /** @description The first matching lines. */
            hits: components["schemas"]["Hit"][];
            /**
             * Format: int64
             * @description The `from_line` of the next search; null if the whole log was searched.
             */
            next_line: number | null;
            /**
             * Format: int64
             * @description How many lines match, from `from_line` to the end of the log or of an incomplete search.
             */
            total: number;
        };
        /** @description A secret, with its value if you may read it. */
        Secret: {
            /** @description When it was created. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who created it. */
            created_by: string;
            /** @description The id of the request that created it. */
            created_by_request_id: string;
            /** @description What it is for. */
            description?: string;
            /** @description The environment variable that gets the value. */
            key_name: string;
            /** @description The id of the request that changed it last. */
            modified_by_request_id: string;
            /** @description The secret's name. */
            name: string;
            /** @description The users that own it. */
            owned_by: string[];
            /** @description When it was changed last. */
            updated_at: components["schemas"]["Rfc3339"];
            /** @description The user who changed it last. */
            updated_by: string;
            /** @description Who else may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or `role:NAME`. */
            use_by: string[];
            /** @description The value; absent in lists, and if you may not read it. */
            value?: components["schemas"]["Sensitive"];
        };
        /** @description One secret. */
        SecretResponse: {
            /** @description The secret. */
            secret: components["schemas"]["Secret"];
        };
        /** @description A list of secrets, without values. */
        SecretsResponse: {
            /** @description The secrets that you may use or manage. */
            secrets: components["schemas"]["Secret"][];
            /**
             * Format: int64
             * @description How many secrets there are on all pages.
             */
            total: number;
        };
        /** @description The check of secrets. */
        SecretsStatus: {
            /**
             * Format: int64
             * @description How many cannot be decrypted.
             * @default 0
             */
            missing_count: number;
            /**
             * Format: int64
             * @description How many have no owner.
             * @default 0
             */
            orphaned_count: number;
            /**
             * @description Their ids.
             * @default []
             */
            orphaned_parameters: string[];
            /**
             * Format: int64
             * @description How many had their tags corrected.
             * @default 0
             */
            tag_updated_count: number;
            /**
             * Format: int64
             * @description How many were checked.
             * @default 0
             */
            total_secrets: number;
            /**
             * Format: int64
             * @description How many can be decrypted.
             * @default 0
             */
            verified_count: number;
        };
        /** @description A confidential text: a key, a token or the value of a secret. */
        Sensitive: string;
        /**
         * @description The role to give to a user.
         * @example {
         *       "role": "operator"
         *     }
         */
        SetRoleRequest: {
            /**
             * @description The role: `admin`, `operator`, `developer` or `viewer`.
             * @enum {string}
             */
            role: "admin" | "operator" | "developer" | "viewer";
        };
        /** @description The result of changing a role. */
        SetRoleResponse: {
            /** @description The user's e-mail address. */
            email: string;
            /** @description The result as a sentence. */
            message: string;
            /** @description The user's role. */
            role: string;
        };
        /**
         * @description The status of an execution.
         * @enum {string}
         */
        Status: "PENDING" | "STARTING" | "RUNNING" | "TERMINATING" | "SUCCEEDED" | "FAILED" | "STOPPED";
        /** @description The status of an execution, with its reasons and times. */
        StatusResponse: {
            /**
             * Format: int32
             * @description How many attempts were started.
             */
            attempt: number;
            /** @description The command as it was submitted. */
            command: string;
            /** @description When it finished. */
            completed_at?: components["schemas"]["Rfc3339"];
            /**
             * Format: double
             * @description The cost in dollars.
             */
            cost_usd?: number;
            /**
             * Format: int64
             * @description Whole seconds from start to finish.
             */
            duration_seconds?: number;
            /** @description Why it finished. */
            end_reason?: components["schemas"]["Reason"];
            /** @description The execution's id. */
            execution_id: string;
            /**
             * Format: int32
             * @description The exit code; null until it finishes.
             */
            exit_code: number | null;
            /** @description The id of the image. */
            image_id: string;
            /** @description Further information about the status. */
            message?: string;
            /** @description When the command started; until then, when it was submitted. */
            started_at: components["schemas"]["Rfc3339"];
            /** @description The status. */
            status: components["schemas"]["Status"];
            /** @description When it was submitted. */
            submitted_at?: components["schemas"]["Rfc3339"];
            /** @description Why it is queued. */
            waiting_for?: components["schemas"]["Reason"];
            /**
             * @description Whether its worker has been silent for longer than the lease; the command may still be
             *     running.
             */
            worker_unreachable?: boolean;
        };
        /** @description A task of a job. */
        Task: {
            /**
             * Format: int32
             * @description How many attempts of its newest execution were started.
             */
            attempt: number;
            /** @description When its newest execution finished. */
            completedAt?: components["schemas"]["Rfc3339"];
            /** @description The ids of the tasks that must complete first. */
            dependsOn: string[];
            /** @description Why its newest execution finished. */
            end_reason?: components["schemas"]["Reason"];
            /** @description The id of its newest execution. */
            executionId?: string;
            /** @description Its input. */
            input?: unknown;
            /** @description The task's display name. */
            name: string;
            /** @description Its output. */
            output?: unknown;
            /**
             * Format: int64
             * @description The size of its output in bytes, if it is too large to be included.
             */
            outputBytes?: number;
            /** @description What it runs since a resume changed it. */
            revision?: components["schemas"]["TaskRevision"];
            /** @description When its newest execution started. */
            startedAt?: components["schemas"]["Rfc3339"];
            /** @description The task's status: `WAITING`, or that of its execution. */
            status: string;
            /** @description The task's id, unique within its job. */
            taskId: string;
            /** @description Why it is queued. */
            waiting_for?: components["schemas"]["Reason"];
        };
        /** @description A change of a task, made when its job is resumed. */
        TaskChange: {
            /** @description The program's arguments. With them, even with an empty list, no shell is used. */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command?: string | null;
            /** @description Environment variables; added to those of the defaults. */
            env?: {
                [key: string]: string;
            } | null;
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image. */
            image?: string | null;
            /** @description Labels to find it by; added to those of the defaults. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A lock to hold while the command runs. A task always waits for its lock. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: without limit.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * @description Whether these fields are all that the task runs with. Otherwise absent fields stay as
             *     they are, variables and labels are added to those of the task, and another `command`
             *     removes the old `args`.
             */
            replace?: boolean;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix; default: 2.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[] | null;
            /** @description The id of the task: a failed one, or one that waits for a failed one. */
            taskId: string;
            /** @description Run it on a pseudo-terminal without input; its output is one stream. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it; added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            } | null;
        };
        /** @description How many tasks of a job are in each state. The sum is the number of tasks. */
        TaskCounts: {
            /**
             * Format: int64
             * @description Tasks that completed.
             */
            completed: number;
            /**
             * Format: int64
             * @description Tasks that failed or were stopped.
             */
            failed: number;
            /**
             * Format: int64
             * @description Tasks that are queued or running.
             */
            running: number;
            /**
             * Format: int64
             * @description Tasks that wait for other tasks, or for the job's concurrency.
             */
            waiting: number;
        };
        /** @description Settings for every task that does not have its own. */
        TaskDefaults: {
            /** @description The program's arguments. With them, even with an empty list, no shell is used. */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command?: string | null;
            /** @description Environment variables; added to those of the defaults. */
            env?: {
                [key: string]: string;
            } | null;
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image. */
            image?: string | null;
            /** @description Labels to find it by; added to those of the defaults. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A lock to hold while the command runs. A task always waits for its lock. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: without limit.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix; default: 2.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[] | null;
            /** @description Run it on a pseudo-terminal without input; its output is one stream. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it; added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            } | null;
        };
        /** @description The health of a running execution. */
        TaskHealth: {
            /**
             * Format: int64
             * @description Milliseconds since it started.
             */
            elapsed: number;
            /** @description Its health. */
            health: components["schemas"]["HealthWord"];
            /** @description The job that it belongs to. */
            jobId?: string;
            /** @description The type of that event. */
            lastEventType: string;
            /** @description The execution's id. */
            requestId: string;
            /** @description The task in that job. */
            taskId?: string;
            /**
             * Format: int64
             * @description Milliseconds since its last event.
             */
            timeSinceLastEvent: number;
            /** @description The worker that runs it. */
            workerId?: string;
        };
        /** @description The health of all running executions. */
        TaskHealthResponse: {
            /** @description When the check was made. */
            checkedAt?: components["schemas"]["Rfc3339"];
            /** @description How many executions are in each state. */
            summary: components["schemas"]["TaskHealthSummary"];
            /** @description The executions, the worst first. */
            tasks: components["schemas"]["TaskHealth"][];
        };
        /** @description How many running executions are in each state. */
        TaskHealthSummary: {
            /**
             * Format: int64
             * @description Silent for a long time.
             */
            critical: number;
            /**
             * Format: int64
             * @description Heard from recently.
             */
            healthy: number;
            /**
             * Format: int64
             * @description Running for a very long time.
             */
            overtime: number;
            /**
             * Format: int64
             * @description All running executions.
             */
            totalProcessing: number;
            /**
             * Format: int64
             * @description Silent for a while.
             */
            warning: number;
        };
        /** @description A task to submit. */
        TaskRequest: {
            /** @description The program's arguments. With them, even with an empty list, no shell is used. */
            args?: string[] | null;
            /** @description The shell command to run; with `args`, the program to run. */
            command?: string | null;
            /** @description The ids of the tasks that must complete first. */
            dependsOn?: string[] | null;
            /** @description Environment variables; added to those of the defaults. */
            env?: {
                [key: string]: string;
            } | null;
            /** @description The directory in the repository in which the command starts. */
            git_path?: string | null;
            /** @description The branch, tag or commit; default: the repository's default branch. */
            git_ref?: string | null;
            /** @description A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the access token of the repository. */
            git_token?: string | null;
            /** @description The image; default: the default image. */
            image?: string | null;
            /** @description Any JSON value, which the command finds as `input` in the file `$RUNVOY_INPUT`. */
            input?: unknown;
            /** @description Labels to find it by; added to those of the defaults. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A lock to hold while the command runs. A task always waits for its lock. */
            lock?: string | null;
            /**
             * Format: int64
             * @description How many seconds to wait for the lock; default: without limit.
             */
            lock_wait?: number | null;
            /** @description The task's display name; default: its id. */
            name?: string | null;
            /**
             * Format: int32
             * @description The priority, from 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; default: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description How many times to retry after a failure that a retry may fix; default: 2.
             */
            retries?: number | null;
            /** @description The names of the secrets to add to the environment. */
            secrets?: string[] | null;
            /** @description The task's id, unique within its job. */
            taskId: string;
            /** @description Run it on a pseudo-terminal without input; its output is one stream. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description The timeout of an attempt in seconds.
             */
            timeout?: number | null;
            /** @description The labels that a worker must have to run it; added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            } | null;
        };
        /** @description What a task runs since a resume changed it. */
        TaskRevision: {
            /** @description The command with its arguments that it runs now. */
            command: string;
            /**
             * Format: int32
             * @description The generation of the job that began with that resume; the first one is 1.
             */
            generation: number;
            /** @description The command with its arguments that it was submitted with. */
            originalCommand: string;
        };
        /** @description One event of a request. */
        TraceLog: {
            /** @description The event's id. */
            event_id: string;
            /** @description What happened, as a sentence. */
            message: string;
            /**
             * Format: int64
             * @description The time in Unix milliseconds.
             */
            timestamp: number;
        };
        /** @description What a request did. */
        TraceResponse: {
            /** @description The events of the request, in order. */
            logs: components["schemas"]["TraceLog"][];
            /** @description The resources that it created or changed last. */
            related_resources: components["schemas"]["RelatedResources"];
        };
        /** @description Changes to a secret. Absent fields are kept. */
        UpdateSecretRequest: {
            /** @description What it is for. */
            description?: string | null;
            /** @description The environment variable that gets the value. */
            key_name?: string | null;
            /**
             * @description Everyone who may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or
             *     `role:NAME`.
             */
            use_by?: string[] | null;
            value?: components["schemas"]["Sensitive"] | null;
        };
        /** @description A user. */
        User: {
            /** @description When the invitation expires; absent once it was claimed. */
            claim_expires_at?: components["schemas"]["Rfc3339"];
            /** @description When the user was created. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who created this one. */
            created_by?: string;
            /** @description The id of the request that created the user. */
            created_by_request_id: string;
            /** @description The user's e-mail address. */
            email: string;
            /** @description The groups that the user is a member of. */
            groups: string[];
            /** @description The API keys, oldest first. */
            keys: components["schemas"]["Key"][];
            /** @description When one of the user's keys was last used, to the minute. */
            last_used?: components["schemas"]["Rfc3339"];
            /** @description The id of the request that changed the user last. */
            modified_by_request_id: string;
            /** @description Whether the user was revoked. */
            revoked: boolean;
            /** @description The role: `admin`, `operator`, `developer` or `viewer`. */
            role: string;
        };
        /** @description A list of users. */
        UsersResponse: {
            /** @description The users. */
            users: components["schemas"]["User"][];
        };
        /** @description A rule that was considered. */
        Verdict: {
            /** @description Whether it allows or denies. */
            effect: components["schemas"]["Effect"];
            /** @description The rule's name, or `role:NAME` for the role itself. */
            rule: string;
            /** @description Why, as a sentence. */
            why: string;
        };
        /** @description The current user. */
        Whoami: {
            /** @description The user's e-mail address. */
            email: string;
            /** @description The groups that the user is a member of. */
            groups: string[];
            /** @description When the API key expires; absent: never. */
            key_expires_at?: components["schemas"]["Rfc3339"];
            /** @description The first characters of the API key; absent if the local socket is the credential. */
            key_prefix?: string;
            /** @description The role: `admin`, `operator`, `developer` or `viewer`. */
            role: string;
            /** @description The names of the rules that apply to the user. */
            rules: string[];
            /** @description The server's version. */
            server_version: string;
        };
        /** @description A worker. */
        Worker: {
            /** @description The account that it signed in with; absent for a worker inside a server. */
            account?: string;
            /**
             * Format: int32
             * @description How many executions it can run at the same time.
             */
            concurrency: number;
            /** @description The admin who drains it. */
            drained_by?: string;
            /**
             * @description Whether it is draining: it finishes its executions and takes no new ones, because it is
             *     about to exit or an admin drains it.
             */
            draining: boolean;
            /** @description The machine that it runs on. */
            host: string;
            /** @description Whether it runs inside a server. */
            in_process: boolean;
            /** @description The labels that executions can ask for. */
            labels: {
                [key: string]: string;
            };
            /** @description Whether it is online: it was heard from within the last 30 seconds, or holds a lease. */
            live: boolean;
            /** @description The worker's name. */
            name: string;
            /** @description The queues it serves. */
            queues: string[];
            /** @description The runner: how it runs commands. */
            runner: string;
            /**
             * Format: int32
             * @description How many executions it is running.
             */
            running: number;
            /** @description When it was last heard from. */
            seen_at: components["schemas"]["Rfc3339"];
            /** @description When it started. */
            since: components["schemas"]["Rfc3339"];
            /** @description The program's version. */
            version: string;
            /** @description The id of this start of the worker; a restarted worker has another one. */
            worker_id: string;
        };
        /** @description An account that workers sign in with. */
        WorkerAccount: {
            /** @description When it was created. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description The user who created it. */
            created_by: string;
            /** @description What it is for. */
            description?: string;
            /** @description The fingerprint of its public key, which is the `kid` of its tokens. */
            fingerprint?: string;
            /** @description The account's id. An account that reuses the name has another id. */
            id: string;
            /** @description The first characters of its API key; absent for an account with a public key. */
            key_prefix?: string;
            /** @description When it got its current key. */
            keyed_at: components["schemas"]["Rfc3339"];
            /** @description When its key was last used, to the minute. */
            last_used?: components["schemas"]["Rfc3339"];
            /** @description What a worker may do besides running executions: `submit` them, and read and kill those. */
            may: string[];
            /** @description The account's name. */
            name: string;
            /** @description The queues that it may serve; empty: all. */
            queues: string[];
            /** @description Whether it was revoked. */
            revoked: boolean;
            /**
             * @description The role: `worker`, or for an account with a public key also `viewer`, `developer` or
             *     `operator`.
             */
            role: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getLinkedLogByShortPath: {
        parameters: {
            query?: {
                /** @description Only lines after this time; default: from the beginning */
                since?: string;
                /** @description The token of a signed link, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, a few megabytes at most */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkedLog"];
                };
            };
        };
    };
    explainAccess: {
        parameters: {
            query: {
                /** @description The action to explain */
                action: "run" | "read" | "kill" | "redrive" | "share_log" | "read_locks" | "release_lock" | "read_images" | "manage_images" | "read_secrets" | "write_secrets" | "rotate_sealing_key" | "read_playbooks" | "manage_playbooks" | "manage_users" | "manage_keys" | "explain_access" | "read_audit" | "trace" | "reconcile" | "read_queues" | "manage_queues" | "manage_workers" | "lease" | "diagnose" | "metrics" | "backup" | "know_self";
                /** @description The command of a run */
                command?: string;
                /** @description The full id of the execution to read, share or kill */
                execution?: string;
                /** @description The image of a run */
                image?: string;
                /** @description The lock of a run */
                lock?: string;
                /** @description The playbook to run */
                playbook?: string;
                /** @description The queue of a run */
                queue?: string;
                /** @description The secret of a run, or the secret to read or write */
                secret?: string;
                /** @description The user to explain it for; default: you */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The decision */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
        };
    };
    recoverAdmin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RecoverRequest"];
            };
        };
        responses: {
            /** @description The API key; it is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoverResponse"];
                };
            };
        };
    };
    sendTestAlert: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook accepted the message */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertTestResponse"];
                };
            };
        };
    };
    listAuditEvents: {
        parameters: {
            query?: {
                /** @description Only this action, such as executions.kill, or all actions on a resource, such as executions */
                action?: string;
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of events; default: 100 */
                limit?: number;
                /** @description Only events at this time or later */
                since?: string;
                /** @description Only events with this text in user, action, entity, command, result, address or details; case is ignored */
                text?: string;
                /** @description Only events before this time */
                until?: string;
                /** @description Only what this user did */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page. A page can be empty without being the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEvent"][];
                };
            };
        };
    };
    exportAuditTrail: {
        parameters: {
            query?: {
                /** @description Only this action, such as executions.kill, or all actions on a resource, such as executions */
                action?: string;
                /** @description Only events at this time or later */
                since?: string;
                /** @description Only events with this text in user, action, entity, command, result, address or details; case is ignored */
                text?: string;
                /** @description Only events before this time */
                until?: string;
                /** @description Only what this user did */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One event per line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": unknown;
                };
            };
        };
    };
    verifyAuditTrail: {
        parameters: {
            query?: {
                /** @description Also compare all stored records with what the events say */
                state?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of the check, whether or not the trail is intact */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditVerification"];
                };
            };
        };
    };
    createBackup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackupRequest"];
            };
        };
        responses: {
            /** @description The backup is complete and on disk */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackupResponse"];
                };
            };
        };
    };
    claimInvitationByGet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The 32 characters of the invitation */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The API key; it is shown only here */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClaimResponse"];
                };
            };
        };
    };
    claimInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The 32 characters of the invitation */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The API key; it is shown only here */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClaimResponse"];
                };
            };
        };
    };
    diagnoseServer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The checks with their results */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorResponse"];
                };
            };
        };
    };
    queryEvents: {
        parameters: {
            query?: {
                /** @description Only events of this app */
                app?: string;
                /** @description The X-Next-Cursor of the page before, or the `cursor` of a line of a stream */
                cursor?: string;
                /** @description Only events about this entity: TASK:ID for an execution, JOB:ID for a job */
                entity?: string;
                /** @description Stream events as JSON lines (application/x-ndjson) until the client disconnects */
                follow?: boolean;
                /** @description Only events at this time or later. A stream starts there; default for a stream: now */
                from?: string;
                /** @description The maximum number of events; default: 100. Not with `follow` */
                limit?: number;
                /** @description The order by time; default: desc. A stream is always asc */
                order?: "asc" | "desc";
                /** @description Include values that were too large for an event, instead of their `_s3Overflow` reference. Large inputs of single tasks stay references */
                resolve?: boolean;
                /** @description Only events of this tenant; with `app` or `entity` it needs a `type` */
                tenant?: string;
                /** @description Only events before this time. Not with `follow` */
                to?: string;
                /** @description Only events of this type */
                type?: "Task Pending" | "Task Processing Started" | "Task Processing Failed" | "Task Completed" | "Task Failed" | "Task Timeout" | "Task Heartbeat" | "Task Stopped" | "Task Health Check" | "Job Created" | "Job Tasks Added" | "Job Completed" | "Job Failure Detected" | "Audit" | "Audit Checkpoint";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page. A page can be empty without being the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
        };
    };
    listExecutions: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description Only executions of this job */
                job?: string;
                /** @description The maximum number of executions; default: 10, also where empty; never more than 10000. A page that reaches 16 MiB ends early, with a cursor. 0 streams all of them */
                limit?: number | string;
                /** @description Only executions that asked for this lock */
                lock?: string;
                /** @description Only executions of this queue */
                queue?: string;
                /** @description Only executions submitted at this time or later */
                since?: string;
                /** @description Only executions with one of these statuses, separated by commas; empty: all */
                status?: string;
                /** @description Only executions with this text in their command, labels, id or end reason; case is ignored */
                text?: string;
                /** @description Only executions submitted before this time */
                until?: string;
                /** @description Only executions that this user submitted */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The executions */
            200: {
                headers: {
                    /** @description With `text`: how many executions were searched. A page that is not full can have a next page */
                    "X-Looked-At"?: string;
                    /** @description The cursor of the next page; absent on the last page and with `limit=0` */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Execution"][];
                };
            };
        };
    };
    createExecution: {
        parameters: {
            query?: {
                /** @description Only say what would happen. Prefer the path of the dry run, which cannot run anything */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunRequest"];
            };
        };
        responses: {
            /** @description With `dry_run`: what would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description The execution was recorded and will run */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResponse"];
                };
            };
        };
    };
    getExecution: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The execution */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Execution"];
                };
            };
        };
    };
    killExecution: {
        parameters: {
            query?: {
                /** @description Send SIGKILL at once, without SIGTERM and the grace period */
                force?: boolean;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The execution is being killed, or was stopped before it started */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KillResponse"];
                };
            };
            /** @description The execution had already finished */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listExecutionEvents: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of events; default: all */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events; a page can hold fewer than `limit` without being the last */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
        };
    };
    killUnfinishedExecution: {
        parameters: {
            query?: {
                /** @description Send SIGKILL at once, without SIGTERM and the grace period */
                force?: boolean;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["KillRequest"];
            };
        };
        responses: {
            /** @description The execution is being killed, or was stopped before it started */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KillResponse"];
                };
            };
        };
    };
    createLogLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkResponse"];
                };
            };
        };
    };
    getLogs: {
        parameters: {
            query?: {
                /** @description The form of the response; default: json */
                format?: "json" | "text" | "raw" | "ndjson";
                /** @description Start at this line; not together with `tail` */
                from_line?: number;
                /** @description The maximum number of lines; 0: all */
                limit?: number;
                /** @description Only lines that contain this text */
                search?: string;
                /** @description Only lines of this stream */
                stream?: "stdout" | "stderr" | "platform";
                /** @description Only the last lines, this many; not together with `from_line` */
                tail?: number;
                /** @description The token of a signed link, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogsResponse"];
                    "application/octet-stream": unknown;
                    "application/x-ndjson": unknown;
                    "text/plain; charset=utf-8": unknown;
                };
            };
            /** @description A range of the command's exact bytes */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
        };
    };
    searchLogs: {
        parameters: {
            query: {
                /** @description Start at this line */
                from_line?: number;
                /** @description The maximum number of hits to return; default: 100 */
                limit?: number;
                /** @description The text to find, at most 4096 bytes */
                q: string;
                /** @description Treat `q` as a regular expression */
                regex?: boolean;
                /** @description Search only lines of this stream */
                stream?: "stdout" | "stderr" | "platform";
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The hits */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResponse"];
                };
            };
        };
    };
    rerunExecution: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new execution was recorded and will run */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResponse"];
                };
            };
        };
    };
    getExecutionStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The status */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusResponse"];
                };
            };
        };
    };
    streamLogs: {
        parameters: {
            query?: {
                /** @description Send binary frames of many lines, for runvoy's own clients */
                batch?: boolean;
                /** @description Also send a message when the status changes */
                events?: "status";
                /** @description Resume after this `event_id`, or after this line number; empty: from the first line */
                last_event_id?: string;
                /** @description The ticket in a `websocket_url` */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection is a WebSocket now */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    waitForExecution: {
        parameters: {
            query?: {
                /** @description Seconds to wait; default: 60, never more than 600 */
                timeout?: number;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The status at the end of the wait */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusResponse"];
                };
            };
        };
    };
    listGroups: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The groups, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupsResponse"];
                };
            };
        };
    };
    putGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutGroupRequest"];
            };
        };
        responses: {
            /** @description The group was saved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupResponse"];
                };
            };
        };
    };
    deleteGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The group's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group was deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupResponse"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server is up */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    reconcileRecords: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found and repaired */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReconcileResponse"];
                };
            };
        };
    };
    checkExecutions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Counts, and each execution, the worst first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskHealthResponse"];
                };
            };
        };
    };
    checkExecution: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its health */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskHealth"];
                };
            };
        };
    };
    listImages: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The images by id, the built-in `local` first */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImagesResponse"];
                };
            };
        };
    };
    getImage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The image's id, or its name with or without a tag; it may contain slashes and colons */
                image: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The image */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Image"];
                };
            };
        };
    };
    unregisterImage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The image's id, or its name with or without a tag; it may contain slashes and colons */
                image: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The image is no longer registered */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageResponse"];
                };
            };
        };
    };
    registerImage: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterImageRequest"];
            };
        };
        responses: {
            /** @description The image was registered */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageResponse"];
                };
            };
        };
    };
    listJobs: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of jobs; default: 50 */
                limit?: number;
                /** @description Only jobs submitted at this time or later */
                since?: string;
                /** @description Only jobs with one of these statuses, separated by commas */
                status?: string;
                /** @description Only jobs that this user submitted */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The jobs */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"][];
                };
            };
        };
    };
    createJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateJobRequest"];
            };
        };
        responses: {
            /** @description The job was recorded */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateJobResponse"];
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: {
                /** @description 0: leave the tasks out and return only their counts */
                tasks?: number;
            };
            header?: never;
            path: {
                /** @description The job's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
        };
    };
    cancelJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The job's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job was cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobResponse"];
                };
            };
        };
    };
    resumeJob: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The job's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumeJobRequest"];
            };
        };
        responses: {
            /** @description The job runs again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobResponse"];
                };
            };
        };
    };
    addTasks: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The job's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddTasksRequest"];
            };
        };
        responses: {
            /** @description The tasks were added */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddTasksResponse"];
                };
            };
        };
    };
    listTaskEvents: {
        parameters: {
            query?: {
                /** @description Include values that were too large for an event, instead of their `_s3Overflow` reference. Large inputs of single tasks stay references */
                resolve?: boolean;
            };
            header?: never;
            path: {
                /** @description The job's id, or six or more digits that begin or end it and no other id */
                id: string;
                /** @description The task's `taskId` */
                task: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
        };
    };
    listLocks: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The locks, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lock"][];
                };
            };
        };
    };
    releaseLock: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The lock's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lock was released */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReleaseResponse"];
                };
            };
        };
    };
    getLinkedLog: {
        parameters: {
            query?: {
                /** @description Only lines after this time; default: from the beginning */
                since?: string;
                /** @description The token of a signed link, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution's id, or six or more digits that begin or end it and no other id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, a few megabytes at most */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkedLog"];
                };
            };
        };
    };
    getApiMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain; version=0.0.4; charset=utf-8": unknown;
                };
            };
        };
    };
    getOpenApiDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI 3.1 document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
        };
    };
    listPlaybooks: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The playbooks, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaybooksResponse"];
                };
            };
        };
    };
    getPlaybook: {
        parameters: {
            query?: {
                /** @description The version; default: the newest */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The playbook's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The playbook */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Playbook"];
                };
            };
        };
    };
    putPlaybook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The playbook's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutPlaybookRequest"];
            };
        };
        responses: {
            /** @description The version was saved and is the newest one */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PutPlaybookResponse"];
                };
            };
        };
    };
    deletePlaybook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The playbook's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The playbook was deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemovePlaybookResponse"];
                };
            };
        };
    };
    runPlaybook: {
        parameters: {
            query?: {
                /** @description Only say what would happen. Prefer the path of the dry run, which cannot run anything */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The playbook's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RunPlaybookRequest"];
            };
        };
        responses: {
            /** @description With `dry_run`: what would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description The execution was recorded and will run */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResponse"];
                };
            };
        };
    };
    dryRunPlaybook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The playbook's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RunPlaybookRequest"];
            };
        };
        responses: {
            /** @description What would happen */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
        };
    };
    listQueues: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queues, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"][];
                };
            };
        };
    };
    putQueue: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The queue's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutQueueRequest"];
            };
        };
        responses: {
            /** @description The settings of the queue */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueTermsResponse"];
                };
            };
        };
    };
    resetQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The queue's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue has no settings any more */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueTermsResponse"];
                };
            };
        };
    };
    listDeadLetters: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of dead letters; default: 50 */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The queue's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The dead letters */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"][];
                };
            };
        };
    };
    redriveDeadLetters: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The queue's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RedriveRequest"];
            };
        };
        responses: {
            /** @description What became of each dead letter */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedriveResponse"];
                };
            };
        };
    };
    listRules: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulesResponse"];
                };
            };
        };
    };
    putRule: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutRuleRequest"];
            };
        };
        responses: {
            /** @description The rule was saved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RuleResponse"];
                };
            };
        };
    };
    deleteRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The rule's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rule was deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RuleResponse"];
                };
            };
        };
    };
    runCommand: {
        parameters: {
            query?: {
                /** @description Only say what would happen. Prefer the path of the dry run, which cannot run anything */
                dry_run?: boolean;
            };
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunRequest"];
            };
        };
        responses: {
            /** @description With `dry_run`: what would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description The execution was recorded and will run */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResponse"];
                };
            };
        };
    };
    dryRunCommand: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunRequest"];
            };
        };
        responses: {
            /** @description What would happen */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
        };
    };
    rotateSealingKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key was rotated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotateSealingKeyResponse"];
                };
            };
        };
    };
    listSecrets: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secrets, by name; `total` counts all pages */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecretsResponse"];
                };
            };
        };
    };
    createSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateSecretRequest"];
            };
        };
        responses: {
            /** @description The secret was created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SaveSecretResponse"];
                };
            };
        };
    };
    getSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The secret's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secret */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecretResponse"];
                };
            };
        };
    };
    updateSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The secret's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateSecretRequest"];
            };
        };
        responses: {
            /** @description The secret was changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SaveSecretResponse"];
                };
            };
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The secret's name; it may contain slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secret was deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeleteSecretResponse"];
                };
            };
        };
    };
    rotateSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key was rotated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotateSigningKeyResponse"];
                };
            };
        };
    };
    traceRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The request id, from the response's X-Request-ID */
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events and resources of the request */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TraceResponse"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The users, by e-mail address */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsersResponse"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's e-mail address: yours, or as an admin any user's */
                email: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys, oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeysResponse"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The user's e-mail address: yours, or as an admin any user's */
                email: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateKeyRequest"];
            };
        };
        responses: {
            /** @description The key; it is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateKeyResponse"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: {
                /** @description The key of this request replaces it, also in the file where the server keeps the key of its first admin */
                replaced?: boolean;
            };
            header?: never;
            path: {
                /** @description The user's e-mail address: yours, or as an admin any user's */
                email: string;
                /** @description The first characters of the key, as the list shows them */
                prefix: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key was revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeKeyResponse"];
                };
            };
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The user's e-mail address: yours, or as an admin any user's */
                email: string;
                /** @description The first characters of the key, as the list shows them */
                prefix: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateKeyRequest"];
            };
        };
        responses: {
            /** @description The new key; it is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateKeyResponse"];
                };
            };
        };
    };
    renewInvitation: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The user's e-mail address */
                email: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RenewInvitationRequest"];
            };
        };
        responses: {
            /** @description The new token; it is shown only here */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateUserResponse"];
                };
            };
        };
    };
    setUserRole: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's e-mail address */
                email: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetRoleRequest"];
            };
        };
        responses: {
            /** @description The role was changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SetRoleResponse"];
                };
            };
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateUserRequest"];
            };
        };
        responses: {
            /** @description The user was created; the token is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateUserResponse"];
                };
            };
        };
    };
    revokeUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RevokeUserRequest"];
            };
        };
        responses: {
            /** @description The user was revoked, or had been before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeUserResponse"];
                };
            };
        };
    };
    whoami: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current user */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Whoami"];
                };
            };
        };
    };
    listWorkers: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workers, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Worker"][];
                };
            };
        };
    };
    createWorker: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWorkerRequest"];
            };
        };
        responses: {
            /** @description The account; its key is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateWorkerResponse"];
                };
            };
        };
    };
    revokeWorker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The account was revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeWorkerResponse"];
                };
            };
        };
    };
    drainWorker: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The worker: its name or its id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker finishes what it runs and gets no new work, also after a restart, until it is resumed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainWorkerResponse"];
                };
            };
        };
    };
    resumeWorker: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The worker: its name or its id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker takes work again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainWorkerResponse"];
                };
            };
        };
    };
    listWorkerAccounts: {
        parameters: {
            query?: {
                /** @description The X-Next-Cursor of the page before */
                cursor?: string;
                /** @description The maximum number of items; default: all */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The accounts, by name */
            200: {
                headers: {
                    /** @description The cursor of the next page; absent on the last page */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerAccount"][];
                };
            };
        };
    };
    createWorkerAccount: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWorkerRequest"];
            };
        };
        responses: {
            /** @description The account; its key is shown only here */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateWorkerResponse"];
                };
            };
        };
    };
    revokeWorkerAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The account was revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeWorkerResponse"];
                };
            };
        };
    };
    rotateWorkerKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The account's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new key; it is shown only here */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateWorkerResponse"];
                };
            };
        };
    };
    checkLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is alive */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain; charset=utf-8": unknown;
                };
            };
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain; version=0.0.4; charset=utf-8": unknown;
                };
            };
        };
    };
    checkReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server is ready */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain; charset=utf-8": unknown;
                };
            };
        };
    };
}
