// The types of the HTTP API, made from its OpenAPI document by `npm run types`. Not to be edited.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web page; with an execution's id it leads to that log's page */
        get: operations["home"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/logs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A log as one text, for whoever has a link to it */
        get: operations["getLinkedLogOfPage"];
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
        /** Why somebody may or may not do something, and which rule decides */
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
        /** Make somebody an admin with one more key, as the owner of the machine */
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
        /** Send people a message that says nothing is wrong */
        post: operations["testAlert"];
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
        /** What was done and by whom, newest first */
        get: operations["listAudit"];
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
        /** All that was done, oldest first, an event a line */
        get: operations["exportAudit"];
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
        /** Look at every event and name the first that was altered, removed or reordered */
        get: operations["verifyAudit"];
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
        /** Copy the store, the logs and the keys; only over the local socket */
        post: operations["backup"];
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
        /** Turn a one-time token into a key */
        get: operations["claimByGet"];
        put?: never;
        /** Turn a one-time token into a key */
        post: operations["claim"];
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
        /** What the server finds about itself */
        get: operations["doctor"];
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
        /** The event log, newest first, or as it is written */
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
        /** Executions that the caller may see, newest first */
        get: operations["listExecutions"];
        put?: never;
        /** Run a command */
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
        /** The whole record */
        get: operations["getExecution"];
        put?: never;
        post?: never;
        /** End an execution */
        delete: operations["deleteExecution"];
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
        /** Its events, in order */
        get: operations["listEvents"];
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
        /** End an execution; one that has ended is an error */
        post: operations["kill"];
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
        /** An address that opens this one log for 48 hours without a key */
        post: operations["createLink"];
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
        /** Its log; as raw output it answers ranges too */
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
        /** Lines that match, counted to the log's end. A search that takes longer than 20 s answers with what it has found, and `complete` is false */
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
        /** Run the same command again, as a new execution of the caller */
        post: operations["rerun"];
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
        /** Where it is */
        get: operations["getStatus"];
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
        /** Its log as a WebSocket: what is there, then what comes, then the end */
        get: operations["stream"];
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
        /** Answers when it has ended, or when the wait is over */
        get: operations["wait"];
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
        /** Every group */
        get: operations["listGroups"];
        put?: never;
        /** Make a group what it is to be, new or instead of what it was */
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
        /** Remove a group */
        delete: operations["removeGroup"];
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
        /** Whether the server is there, and which one */
        get: operations["health"];
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
        /** Look for what should not be, and repair what can be */
        post: operations["reconcile"];
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
        /** How what runs is, looked at now; the worst first */
        get: operations["taskHealth"];
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
        /** How one execution is, looked at now */
        get: operations["taskHealthOf"];
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
        /** Every image, the built-in one first */
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
        /** One image */
        get: operations["getImage"];
        put?: never;
        post?: never;
        /** Unregister an image, or all that have one reference; the built-in one stays */
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
        /** Register an image that commands may run in */
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
        /** Jobs without their tasks, newest first */
        get: operations["listJobs"];
        put?: never;
        /** Submit a DAG of tasks */
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
        /** A job with the state of every task */
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
        /** Nothing more of it runs; what runs is killed */
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
        /** Failed and blocked tasks again, some of them changed */
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
        /** More tasks of a job that is open */
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
        /** The events of every execution that a task has been, in order */
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
        /** Every lock that is held */
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
        /** Take a lock from its holder, who goes on without it */
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
        /** A log as one text, for whoever has a link to it */
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
        /** The metrics as Prometheus text */
        get: operations["apiMetrics"];
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
        /** This description */
        get: operations["openapi"];
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
        /** The playbooks that the caller may run, newest versions */
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
        /** One playbook */
        get: operations["getPlaybook"];
        /** A new version of a playbook */
        put: operations["putPlaybook"];
        post?: never;
        /** No such playbook any more; what runs goes on */
        delete: operations["removePlaybook"];
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
        /** Run a playbook, its parameters passed as data */
        post: operations["runPlaybook"];
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
        /** Every queue that holds something, has terms or is served by a worker, by name */
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
        /** Stop a queue, let it go on, or limit it; what is absent stays as it is */
        put: operations["putQueue"];
        post?: never;
        /** Take the terms of a queue away: it goes on, without limits */
        delete: operations["removeQueueTerms"];
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
        /** Executions of a queue that were given up after their last attempt, newest first */
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
        /** Run what was given up again: each as a new execution of its owner, or in its job */
        post: operations["redrive"];
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
        /** Every rule */
        get: operations["listRules"];
        put?: never;
        /** Make a rule what it is to be, new or instead of what it was */
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
        /** Remove a rule */
        delete: operations["removeRule"];
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
        /** Run a command */
        post: operations["run"];
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
        /** Make a new sealing key and seal every secret with it */
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
        /** The secrets that the caller may know of, without their values */
        get: operations["listSecrets"];
        put?: never;
        /** Make a secret */
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
        /** One secret, with its value for those who may read it */
        get: operations["getSecret"];
        /** Change a secret; what the body does not name stays */
        put: operations["updateSecret"];
        post?: never;
        /** Delete a secret */
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
        /** Make a new key that signs the task tokens of new leases */
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
        /** What one request did */
        get: operations["trace"];
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
        /** Everybody there is */
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
        /** The keys of a user */
        get: operations["listKeys"];
        put?: never;
        /** One more key */
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
        /** End one key */
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
        /** A new key in the place of an old one, which ends in the same step */
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
        /** Give an invitation that nobody has answered another token */
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
        /** Make somebody something else */
        post: operations["setRole"];
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
        /** Invite somebody, who claims a key with the token in the answer */
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
        /** End somebody's rights, and their executions where asked to */
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
        /** Who the caller is */
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
        /** Every worker that was heard of within a day and has not left, by name */
        get: operations["listWorkers"];
        put?: never;
        /** Make an account of workers, with a key of its own or with a public key that is brought */
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
        /** End the key of an account of workers */
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
        /** Have a worker finish what it runs and take nothing new */
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
        /** Have a drained worker take work again */
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
        /** Every account of workers, by name; also those that were revoked */
        get: operations["listWorkerAccounts"];
        put?: never;
        /** Make an account of workers, with a key of its own or with a public key that is brought */
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
        /** End the key of an account of workers */
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
        /** Give an account of workers another key; the one before ends in the same step */
        post: operations["rotateWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/assets/{asset}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A script or a style of the web page */
        get: operations["pageAsset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/icon.svg": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The icon of the web page */
        get: operations["pageIcon"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web page of a job */
        get: operations["jobPage"];
        put?: never;
        post?: never;
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
        /** Whether the process lives */
        get: operations["livez"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web page of a log */
        get: operations["logPage"];
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
        /** The metrics as Prometheus text */
        get: operations["metrics"];
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
        /** Whether the server can take requests: what it stands on answers, each by name with its last error, and it is not stopping */
        get: operations["readyz"];
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
        /** @description Body of `POST /jobs/{id}/tasks`. */
        AddTasksRequest: {
            defaults?: components["schemas"]["TaskDefaults"] | null;
            /** @description The tasks; they may depend on each other and on those that are there. */
            tasks: components["schemas"]["TaskRequest"][];
        };
        /** @description Answer to `POST /jobs/{id}/tasks`. */
        AddTasksResponse: {
            /**
             * Format: int64
             * @description How many tasks came with this request.
             */
            addedTasks: number;
            /** @description The job. */
            jobId: string;
            /**
             * Format: int64
             * @description How many it has now.
             */
            totalTasks: number;
        };
        /** @description Answer to `POST /alerts/test`; only admins may ask. */
        AlertTestResponse: {
            /** @description What happened. */
            message: string;
            /** @description The host that took the message. */
            place: string;
        };
        /** @description One call that changed something, or was refused. An item of `GET /audit` and a line of `GET /audit/export`. */
        AuditEvent: {
            /** @description What they did: `users.create`, `executions.kill`, … */
            action: string;
            /** @description From where. */
            address?: string | null;
            /** @description When. */
            at: components["schemas"]["Rfc3339"];
            /** @description What was run or ended, or was to be: the values of the secrets that it names are masked. */
            command?: string | null;
            /** @description What else is to be known; no value of a secret. */
            details?: Record<string, unknown> | null;
            /** @description What it was done to: `USER:ana@example.com`, `TASK:0192ab…`. */
            entity: string;
            /** @description Its id. */
            event_id: string;
            /**
             * Format: int64
             * @description Its number among the events of that entity.
             */
            number?: number;
            /** @description The request. */
            request_id?: string;
            /** @description `ok`, or why not. */
            result?: string;
            /** @description The id of what it was asked of: an execution, a job, a playbook. */
            target?: string | null;
            /** @description Who: an e-mail, or the part of the platform that acted by itself. */
            user?: string;
        };
        /** @description Answer to `GET /audit/verify`. */
        AuditVerification: {
            /**
             * Format: int64
             * @description How many events were looked at.
             */
            checked: number;
            checkpoint_at?: components["schemas"]["Rfc3339"] | null;
            /**
             * Format: int64
             * @description How many executions, jobs, tasks, locks and records were compared with what the events say; only where that was asked for.
             */
            compared?: number | null;
            first_bad?: components["schemas"]["BadEvent"] | null;
            first_mismatch?: components["schemas"]["Mismatch"] | null;
            /** @description Nothing was altered, removed or reordered, and what was compared follows from the events. */
            ok: boolean;
            /**
             * Format: int64
             * @description The number of the first checkpoint that is not exported yet, though others were made since: exporting fails, which the server's
             *     log explains, or somebody cut the file at its end.
             */
            unexported_from?: number | null;
            /**
             * Format: int64
             * @description How many executions and jobs an older version wrote, whose events hold no digest of them: their events are proved, but what they
             *     run and whose they are cannot be compared with these.
             */
            unverifiable?: number;
        };
        /** @description Users and what they own. */
        AuthorizerStatus: {
            /**
             * @description Ownerships that should be there.
             * @default []
             */
            missing_ownerships: string[];
            /**
             * @description Ownerships of things that are gone.
             * @default []
             */
            orphaned_ownerships: string[];
            /**
             * @description Things that belong to nobody.
             * @default []
             */
            resources_with_missing_owners: string[];
            /**
             * Format: int64
             * @description How many things were looked at.
             * @default 0
             */
            total_resources_checked: number;
            /**
             * Format: int64
             * @description How many users were looked at.
             * @default 0
             */
            total_users_checked: number;
            /**
             * @description Users whose role is none of the four.
             * @default []
             */
            users_with_invalid_roles: string[];
            /**
             * @description Users without a role.
             * @default []
             */
            users_with_missing_roles: string[];
        };
        /** @description Asks for a copy. Only the server's own user may, over the local socket. */
        BackupRequest: {
            /** @description The directory to make, an absolute path on the server's machine. It must not exist yet. */
            destination: string;
        };
        /** @description A copy that is complete and on disk. */
        BackupResponse: {
            /** @description Where it is. */
            destination: string;
        };
        /** @description An event that is not as it was written. */
        BadEvent: {
            /** @description What it is about: `USER:ana@example.com`, `TASK:0192ab…`. */
            entity: string;
            /** @description Its id, where it is still known. */
            event_id?: string | null;
            /** @description What was found, for a person. */
            message: string;
            /**
             * Format: int64
             * @description Its number among the events of that entity; 0 where the whole entity is concerned.
             */
            number?: number;
            /** @description `altered`, `removed`, `reordered` or `unreadable`. */
            problem: string;
        };
        /** @description Answer to `POST /claim/{token}`, and to `GET` for other clients. It is given once. */
        ClaimResponse: {
            /** @description The key. Nobody can ask for it again. */
            api_key: components["schemas"]["Sensitive"];
            /** @description What happened, for a person. */
            message?: string;
            /** @description Whose key it is. */
            user_email: string;
        };
        /** @description Executions, locks and what runs them. */
        ComputeStatus: {
            /**
             * Format: int64
             * @description How many belong to nothing.
             * @default 0
             */
            orphaned_count: number;
            /**
             * @description Which.
             * @default []
             */
            orphaned_resources: string[];
            /**
             * Format: int64
             * @description How many were made anew.
             * @default 0
             */
            recreated_count: number;
            /**
             * Format: int64
             * @description How many were corrected.
             * @default 0
             */
            tag_updated_count: number;
            /**
             * Format: int64
             * @description How many were looked at.
             * @default 0
             */
            total_resources: number;
            /**
             * Format: int64
             * @description How many are as they should be.
             * @default 0
             */
            verified_count: number;
        };
        /** @description Body of `POST /jobs`. */
        CreateJobRequest: {
            /**
             * Format: int32
             * @description So many of its tasks may run at once.
             */
            concurrency?: number | null;
            defaults?: components["schemas"]["TaskDefaults"] | null;
            /** @description What people call it. */
            name?: string | null;
            /** @description The client's own key: two submits with the same one are one job. The same thing as the header `Idempotency-Key`. */
            requestId?: string | null;
            /** @description The tasks, 1 to 20,000. */
            tasks: components["schemas"]["TaskRequest"][];
        };
        /** @description Answer to `POST /jobs`. */
        CreateJobResponse: {
            /** @description The new job. */
            jobId: string;
            /**
             * Format: int64
             * @description How many of them wait for no other.
             */
            rootTasks: number;
            /**
             * Format: int64
             * @description How many tasks it has.
             */
            totalTasks: number;
        };
        /** @description Body of `POST /users/{email}/keys`, and of `POST /users/{email}/keys/{prefix}/rotate`, which ends the old key in the same step. */
        CreateKeyRequest: {
            /**
             * Format: int64
             * @description Seconds until it ends, by the server's clock; absent: never.
             */
            expires_in?: number | null;
            /** @description What its user calls it. */
            name?: string | null;
        };
        /** @description Answer to a key that was made. It is given once. */
        CreateKeyResponse: {
            /** @description The key. Nobody can ask for it again. */
            api_key: components["schemas"]["Sensitive"];
            /** @description What is kept of it. */
            key: components["schemas"]["Key"];
            /** @description What became of the file in which the server keeps a key for its first admin, where it held the key that ended. */
            key_file?: string | null;
            /** @description What happened, for a person. */
            message?: string;
        };
        /** @description Body of `POST /secrets`. */
        CreateSecretRequest: {
            /** @description What it is for. */
            description?: string | null;
            /** @description The environment variable that it becomes. */
            key_name: string;
            /** @description Its name. */
            name: string;
            /** @description Who else may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`. */
            use_by?: string[];
            /** @description The value. */
            value: components["schemas"]["Sensitive"];
        };
        /** @description Body of `POST /users/create`. */
        CreateUserRequest: {
            api_key?: components["schemas"]["Sensitive"] | null;
            /**
             * @description Invite a second user to a server that runs commands as its own user. It refuses commands from then on, until it is started with
             *     `--run-as-uids`, `--run-as`, `--no-worker` or `--allow-shared-uid`.
             */
            confirm?: boolean;
            /** @description Whom to invite. */
            email: string;
            /**
             * Format: int64
             * @description Seconds for which the invitation can be answered, at most seven days; 15 minutes where it is absent.
             */
            expires_in?: number | null;
            /** @description `admin`, `operator`, `developer` or `viewer`. */
            role?: string;
        };
        /** @description Answer to an invitation. The token is given once. */
        CreateUserResponse: {
            /** @description What they claim their key with, once; empty where the request brought the key. */
            claim_token: components["schemas"]["Sensitive"];
            /** @description Who was invited. */
            user: components["schemas"]["User"];
        };
        /** @description Body of `POST /workers`, and of `POST /workers/accounts`. */
        CreateWorkerRequest: {
            /** @description Make a key that may run commands on a server that runs them as its own user. It refuses commands from then on, as with a second user. */
            confirm?: boolean;
            /** @description What the account is for: one line of at most 256 characters. */
            description?: string | null;
            /** @description What else a worker with a public key may do: `submit`, and read and end what it submitted. */
            may?: string[];
            /** @description Its name. It may be left out with a public key: then it is what comes with the key, or the key's fingerprint. */
            name?: string;
            /**
             * @description A P-256 public key whose owner signs tokens with the private one: PEM, or base58 of such a key or of a JSON document with `name` and
             *     `public_key`. Absent: a key is made, and shown once.
             */
            public_key?: string | null;
            /** @description The queues it may serve; none means every queue. They are for workers alone. */
            queues?: string[];
            /** @description What it may do: `worker` where it is left out; with a public key also `viewer`, `developer` or `operator`. */
            role?: string | null;
        };
        /** @description Answer to an account that was made or given another key. A key is given once. */
        CreateWorkerResponse: {
            /** @description The account. */
            account: components["schemas"]["WorkerAccount"];
            api_key?: components["schemas"]["Sensitive"] | null;
            /** @description What happened, for a person. */
            message?: string;
        };
        /** @description An execution that was given up after its last attempt. An item of `GET /queues/{name}/dead`. */
        DeadLetter: {
            /**
             * Format: int32
             * @description How many attempts there were.
             */
            attempts?: number;
            /** @description The command as stored. */
            command?: string;
            /** @description Who submitted it. */
            created_by?: string;
            /** @description What the last one failed of. */
            error?: string;
            /** @description What kind of failure that was: `network`, `timeout`, … */
            error_category?: string | null;
            /** @description The execution. */
            execution_id: string;
            /** @description When it was given up. */
            failed_at: components["schemas"]["Rfc3339"];
            /** @description The job it belongs to. */
            job_id?: string | null;
            /** @description Its queue. */
            queue: string;
            /** @description The task of that job. */
            task_id?: string | null;
        };
        /** @description Answer to `DELETE /secrets/{name}`. */
        DeleteSecretResponse: {
            /** @description What happened, for a person. */
            message: string;
            /** @description Which. */
            name: string;
        };
        /** @description Answer to `GET /doctor`; only admins may ask. */
        DoctorResponse: {
            /** @description What was looked at, in order. */
            probes: components["schemas"]["Probe"][];
        };
        /** @description Answer to `POST /workers/{name}/drain` and `POST /workers/{name}/resume`. */
        DrainWorkerResponse: {
            /** @description Whether it takes nothing new from now on. */
            draining: boolean;
            /** @description What happened, for a person. */
            message: string;
            /** @description The worker's name. */
            name: string;
            /**
             * Format: int32
             * @description How many executions it runs now.
             */
            running: number;
        };
        /** @description What a run is held to. What is absent is not limited. */
        DryRunLimits: {
            /**
             * Format: int32
             * @description CPU units; 1024 are one vCPU.
             */
            cpu?: number | null;
            /**
             * Format: int64
             * @description Bytes of log.
             */
            log_bytes?: number | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number | null;
            /**
             * Format: int64
             * @description Processes at once.
             */
            processes?: number | null;
        };
        /** @description Answer to `POST /run?dry_run=1` and `POST /playbooks/{name}/run?dry_run=1`. Nothing was recorded. */
        DryRunResponse: {
            /** @description Whether it would be taken: no rule forbids it, and its lock is free or waited for. */
            allowed: boolean;
            /** @description Arguments of the program, which then runs without a shell. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command: string;
            /**
             * Format: double
             * @description What an hour of it would cost.
             */
            cost_usd_per_hour?: number | null;
            /** @description Names of the variables that it would get from the request. Values are not repeated. */
            env?: string[];
            /** @description The directory in it where the command would start. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description The repository that would be checked out. */
            git_repo?: string | null;
            /** @description That image as it was registered. */
            image: string;
            /** @description The id of the image it would run in. */
            image_id: string;
            /** @description What it would be held to. */
            limits?: components["schemas"]["DryRunLimits"];
            /** @description The lock that it would hold. */
            lock?: string | null;
            lock_held?: components["schemas"]["LockHeld"] | null;
            /**
             * Format: int64
             * @description Seconds that it would wait in line for the lock.
             */
            lock_wait?: number | null;
            /** @description The playbook it comes from, as `NAME@VERSION`. */
            playbook?: string | null;
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority: number;
            /** @description The queue it would go through. */
            queue: string;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably.
             */
            retries: number;
            /** @description Everything that had a say in whether it is allowed, in order. */
            rules?: components["schemas"]["Verdict"][];
            /** @description The secrets that it would get. */
            secrets?: components["schemas"]["DryRunSecret"][];
            /**
             * Format: int64
             * @description Seconds until it would be ended.
             */
            timeout?: number | null;
            waiting_for?: components["schemas"]["Reason"] | null;
        };
        /** @description A secret that a run would get. */
        DryRunSecret: {
            /** @description The environment variable that it becomes. */
            key_name: string;
            /** @description Its name. */
            name: string;
        };
        /**
         * @description What a rule does with what it matches.
         * @enum {string}
         */
        Effect: "allow" | "deny";
        Error: {
            /**
             * @description What happened, for a program.
             * @enum {string}
             */
            code: "INVALID_REQUEST" | "UNAUTHORIZED" | "INVALID_API_KEY" | "API_KEY_REVOKED" | "FORBIDDEN" | "NOT_FOUND" | "SECRET_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "CONFLICT" | "LOCK_HELD" | "SECRET_ALREADY_EXISTS" | "PAYLOAD_TOO_LARGE" | "RATE_LIMITED" | "INTERNAL_ERROR" | "DATABASE_ERROR" | "SERVICE_UNAVAILABLE";
            /** @description Beside CONFLICT: the same request with `"confirm": true` in its body is taken. */
            confirm?: boolean;
            /** @description Why, or what to do next; may be empty. */
            details: string;
            /** @description What happened, for a person. */
            error: string;
            /** @description The execution that holds it. */
            execution_id?: string;
            /** @description The user whose execution holds it. */
            held_by?: string;
            /** @description The lock that was asked for. */
            lock_name?: string;
            /** @description The web page of its log; it carries no token. */
            log_url?: string;
            /** @description Since when. */
            since?: components["schemas"]["Rfc3339"];
        };
        /** @description One immutable fact, with its index keys. */
        Event: {
            /** @description Where it comes from */
            context: {
                [key: string]: unknown;
            };
            /** @description Which one */
            entityId: string;
            /** @description The kind of thing it is about */
            entityType: string;
            /** @description What happened */
            eventType: string;
            /** @description Its number among the chained events of its entity */
            number: number;
            /** @description What else is to be known */
            properties: {
                [key: string]: unknown;
            };
            /** @description When it was recorded */
            receivedAt: number;
            /** @description The tenant */
            tenantId: string;
            /** @description When, in Unix milliseconds */
            timestamp: number;
        } & {
            [key: string]: unknown;
        };
        /** @description Answer to `GET /executions/{id}`, and an item of `GET /executions`. */
        Execution: {
            /** @description Arguments of the program, where it runs without a shell. */
            args?: string[] | null;
            /**
             * Format: int32
             * @description How many attempts began.
             */
            attempt?: number;
            /** @description `LOCAL` or `AWS`. */
            cloud?: string | null;
            /** @description The command as stored. */
            command?: string;
            completed_at?: components["schemas"]["Rfc3339"] | null;
            /**
             * Format: double
             * @description What it cost.
             */
            cost_usd?: number | null;
            /** @description Who submitted it. */
            created_by?: string;
            /** @description The request that made it. */
            created_by_request_id?: string;
            /** @description It was given up after its last attempt, and was not run again. */
            dead?: boolean;
            /**
             * Format: int64
             * @description Whole seconds from start to end.
             */
            duration_seconds?: number | null;
            end_reason?: components["schemas"]["Reason"] | null;
            /** @description Its id. */
            execution_id: string;
            /**
             * Format: int32
             * @description `null` until it ended.
             */
            exit_code?: number | null;
            /** @description The machine it ran on. */
            host?: string | null;
            /** @description The image it runs in. */
            image_id?: string;
            /** @description The job it belongs to. */
            job_id?: string | null;
            /** @description Words of the user's own. */
            labels?: {
                [key: string]: string;
            };
            /** @description The lock it holds, held or waits for. */
            lock_name?: string | null;
            /** @description Where its log is mirrored. */
            log_stream_name?: string | null;
            /** @description The request that changed it last. */
            modified_by_request_id?: string;
            /** @description Who else it belongs to. */
            owned_by?: string[];
            /** @description The queue it went through. */
            queue?: string;
            /** @description What it was run again as after it was given up; absent where its job makes that. */
            redriven_as?: string | null;
            /** @description How it ran: `process`, `container`, `fargate`. */
            runner?: string | null;
            /** @description When its command started; until then, when it was submitted. */
            started_at: components["schemas"]["Rfc3339"];
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            submitted_at?: components["schemas"]["Rfc3339"] | null;
            /** @description The ECS task it ran as. */
            task_arn?: string | null;
            /** @description The task of that job. */
            task_id?: string | null;
            /** @description It runs on a terminal of its own: its output is one stream. */
            terminal?: boolean;
            waiting_for?: components["schemas"]["Reason"] | null;
            /** @description The worker that ran it. */
            worker_id?: string | null;
            /** @description What a worker must have to take it. */
            worker_labels?: {
                [key: string]: string;
            };
            /** @description Its worker has not been heard of for longer than its lease lasts; the command may still run. */
            worker_unreachable?: boolean;
        };
        /** @description Answer to `GET /access/explain`. */
        Explanation: {
            /** @description What they would do. */
            action?: string;
            /** @description Whether it would be let through. */
            allowed: boolean;
            /** @description Their role. */
            role?: string;
            /** @description What decided: a rule's name, or `role:NAME`. */
            rule: string;
            /** @description Everything that had a say, in order. */
            rules?: components["schemas"]["Verdict"][];
            /** @description Who was asked about. */
            user?: string;
            /** @description Why, for a person. */
            why: string;
        };
        /** @description A group. */
        Group: {
            /** @description When it was made. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who made it. */
            created_by?: string;
            /** @description The e-mails of its members, in order. */
            members?: string[];
            /** @description Its name. */
            name: string;
        };
        /** @description Answer to a group that was put or removed. */
        GroupResponse: {
            /** @description What happened, for a person. */
            message: string;
            /** @description Which. */
            name: string;
        };
        /** @description Answer to `GET /groups`, by name. */
        GroupsResponse: {
            /** @description The groups. */
            groups?: components["schemas"]["Group"][];
        };
        /** @description Answer to `GET /health`. */
        Health: {
            /** @description Where it runs commands: `local` or `aws`. */
            provider?: string;
            /** @description The AWS region. */
            region?: string | null;
            /** @description `ok`. */
            status: string;
            /** @description The server's version. */
            version?: string;
        };
        /**
         * @description How an execution is.
         * @enum {string}
         */
        HealthWord: "healthy" | "warning" | "critical" | "overtime";
        /** @description A line that matches. */
        Hit: {
            /**
             * Format: int64
             * @description Its number.
             */
            line: number;
            /** @description Its text; lossy where it is not UTF-8. */
            message: string;
        };
        /** @description Roles. */
        IdentityStatus: {
            /**
             * Format: int64
             * @description How many others there should be.
             * @default 0
             */
            custom_roles_total: number;
            /**
             * Format: int64
             * @description How many of the others are there.
             * @default 0
             */
            custom_roles_verified: number;
            /**
             * @description The roles that images run with by default are there.
             * @default false
             */
            default_roles_verified: boolean;
            /**
             * @description Which are missing.
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
            cpu?: number | null;
            /** @description When it was registered. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who registered it; absent for a built-in one. */
            created_by?: string | null;
            /** @description The request that registered it. */
            created_by_request_id?: string;
            /** @description `[registry/]name[:tag]` as it was registered. */
            image: string;
            /** @description Its id, which tells registries apart. */
            image_id?: string;
            /** @description Its name without registry and tag. */
            image_name?: string | null;
            /** @description Where it is pulled from; absent for the common registry. */
            image_registry?: string | null;
            /** @description Its tag. */
            image_tag?: string | null;
            /** @description It is the one that runs what names none. */
            is_default?: boolean | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number | null;
            /** @description The request that changed it last. */
            modified_by_request_id?: string;
            /** @description Whom it belongs to. */
            owned_by?: string[];
            /** @description The runners that can serve it: `process`, `container`, `fargate`. */
            runners?: string[];
            /** @description `OS/ARCHITECTURE`, such as `Linux/ARM64`. */
            runtime_platform?: string | null;
            /** @description The ECS task definition it became. */
            task_definition_name?: string | null;
            /** @description The IAM role that starts it. */
            task_execution_role_name?: string | null;
            /** @description The IAM role of the command. */
            task_role_name?: string | null;
        };
        /** @description Answer to an image that was registered or unregistered. */
        ImageResponse: {
            /** @description The image as it was named. */
            image: string;
            /** @description Its id. */
            image_id?: string | null;
            /** @description What happened, for a person. */
            message: string;
        };
        /** @description Answer to `GET /images`. */
        ImagesResponse: {
            /** @description The images, by id. */
            images?: components["schemas"]["Image"][];
        };
        /** @description Answer to `GET /jobs/{id}`, and an item of `GET /jobs`, where `tasks` is absent. `GET /jobs/{id}?tasks=0` leaves the tasks out as well. */
        Job: {
            completedAt?: components["schemas"]["Rfc3339"] | null;
            /**
             * Format: int32
             * @description So many of its tasks may run at once.
             */
            concurrency?: number | null;
            /** @description When it was submitted. */
            createdAt: components["schemas"]["Rfc3339"];
            /** @description Who submitted it. */
            createdBy?: string;
            /** @description The first task that failed since the last resume. */
            failedTaskId?: string | null;
            /** @description Its id. */
            jobId: string;
            /** @description What people call it. */
            name?: string | null;
            /** @description The client's own key for it. */
            requestId?: string | null;
            /** @description Where it is. */
            status: components["schemas"]["JobStatus"];
            /** @description How many of them are where. */
            taskCounts?: components["schemas"]["TaskCounts"];
            /** @description Its tasks, in the order they were given. */
            tasks?: components["schemas"]["Task"][];
            /**
             * Format: int64
             * @description How many tasks it has.
             */
            totalTasks: number;
        };
        /** @description Answer to `POST /jobs/{id}/resume` and `POST /jobs/{id}/cancel`. */
        JobResponse: {
            /** @description The job. */
            jobId: string;
            /** @description What happened, for a person. */
            message: string;
            /** @description Where it is now. */
            status: components["schemas"]["JobStatus"];
        };
        /**
         * @description Where a job is.
         * @enum {string}
         */
        JobStatus: "RUNNING" | "FAILED" | "COMPLETED" | "CANCELLED";
        /** @description What is known of a key. The key itself is not kept. */
        Key: {
            /** @description When it was made. */
            created_at: components["schemas"]["Rfc3339"];
            expires_at?: components["schemas"]["Rfc3339"] | null;
            last_used?: components["schemas"]["Rfc3339"] | null;
            /** @description What its user calls it. */
            name?: string | null;
            /** @description Its first characters, unique among the keys of its user. */
            prefix: string;
            /** @description It is not accepted any more. */
            revoked?: boolean;
        };
        /** @description Answer to `GET /users/{email}/keys`. */
        KeysResponse: {
            /** @description The keys, oldest first. */
            keys?: components["schemas"]["Key"][];
        };
        /** @description Body of `POST /executions/{id}/kill`; it may be absent. */
        KillRequest: {
            /** @description Without the time that it would get to end by itself. */
            force?: boolean;
        };
        /** @description Answer to a kill that was taken. */
        KillResponse: {
            /** @description Which execution. */
            execution_id: string;
            /** @description What happens now, for a person. */
            message: string;
        };
        /** @description Answer to `GET /logs/{id}` with a link's token. */
        LinkedLog: {
            /** @description It ended, and there is nothing more to come. */
            completed: boolean;
            /** @description Whose log it is. */
            execution_id: string;
            last_timestamp?: components["schemas"]["Rfc3339"] | null;
            /** @description The lines after `since` as one text, a newline behind each. */
            logs: string;
            /** @description Where the execution is. */
            status: components["schemas"]["Status"];
        };
        /** @description Answer to `POST /executions/{id}/link`. */
        LinkResponse: {
            /** @description Whose log it opens. */
            execution_id: string;
            /** @description Until when it is good, unless the key or the user that made it ends before. */
            expires_at: components["schemas"]["Rfc3339"];
            /** @description The token alone, for `Authorization: Bearer`. */
            token: components["schemas"]["Sensitive"];
            /** @description The web page, with the token in its fragment. */
            url: components["schemas"]["Sensitive"];
        };
        /** @description A lock that an execution holds. */
        Lock: {
            /** @description The execution that holds it. */
            execution_id: string;
            /** @description The user whose execution holds it. */
            held_by: string;
            /** @description Its name. */
            lock_name: string;
            /** @description Since when. */
            since: components["schemas"]["Rfc3339"];
            /**
             * Format: int64
             * @description How many executions wait for it.
             */
            waiters?: number;
        };
        /** @description What `LOCK_HELD` tells beside the error itself. */
        LockHeld: {
            /** @description The execution that holds it. */
            execution_id: string;
            /** @description The user whose execution holds it. */
            held_by: string;
            /** @description The lock that was asked for. */
            lock_name: string;
            /** @description The web page of its log; it carries no token. */
            log_url: string;
            /** @description Since when. */
            since: components["schemas"]["Rfc3339"];
        };
        /** @description One record of a log. It is also a whole text frame of the WebSocket. */
        LogEvent: {
            /**
             * Format: int32
             * @description The attempt that wrote it; 0 is the server itself.
             */
            attempt?: number;
            /** @description It continues the line before it. */
            cont?: boolean;
            /** @description A newline ended it; absent means true. */
            eol?: boolean;
            /** @description `<execution>-<line>`, unique over all executions; a client resumes with it. */
            event_id: string;
            /** @description It came after its attempt had lost its lease. */
            late?: boolean;
            /**
             * Format: int64
             * @description The record's number, counted from 1 over all attempts.
             */
            line?: number;
            /** @description The text; lossy where `message_b64` is given. */
            message: string;
            /** @description The exact bytes where they are not UTF-8. */
            message_b64?: string | null;
            /** @description Where it came from. */
            stream?: string;
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            timestamp: number;
        };
        /** @description Answer to `GET /executions/{id}/logs`. */
        LogsResponse: {
            /** @description The lines; `null` while it runs, unless lines were asked for by number. */
            events?: components["schemas"]["LogEvent"][] | null;
            /** @description Which execution. */
            execution_id: string;
            /**
             * Format: int64
             * @description The number of the line after the last one here.
             */
            next_line?: number;
            /** @description Where the execution is. */
            status: components["schemas"]["Status"];
            /** @description Where its log can be followed; absent once it ended. */
            websocket_url?: string | null;
        };
        /** @description Something that is kept and does not follow from the events. */
        Mismatch: {
            /** @description What it is about: `TASK:0192ab…`, `JOB:0192ab…`, `LOCK:deploy`. */
            entity: string;
            /** @description Which part of it: `status`, `tasks.build.phase`. */
            field: string;
            /** @description What is kept and what the events say, for a person. */
            message: string;
        };
        /** @description An execution that does not run again. */
        NotRedriven: {
            /** @description Why it does not. */
            error?: string;
            /** @description The one that was given up. */
            execution_id: string;
        };
        /** @description A value that a run gives to a playbook. */
        Parameter: {
            /** @description What a value may hold that is refused otherwise. */
            allow?: components["schemas"]["ParameterAllowance"][];
            /** @description What a choice may be. */
            choices?: string[];
            /** @description What it is where a run does not give it; a parameter without one must be given. */
            default?: Record<string, unknown> | null;
            /** @description What it means. */
            description?: string | null;
            /**
             * Format: int64
             * @description The greatest number.
             */
            max?: number | null;
            /**
             * Format: int32
             * @description The most characters of a text.
             */
            max_length?: number | null;
            /**
             * Format: int64
             * @description The least number.
             */
            min?: number | null;
            /** @description What the whole text must look like, with `*` and `?` as in rules. */
            pattern?: string | null;
            /** @description A regular expression that the whole text must match. */
            regex?: string | null;
            /** @description What it must be. */
            type?: components["schemas"]["ParameterType"];
        };
        /**
         * @description What a value holds only where its parameter allows it.
         * @enum {string}
         */
        ParameterAllowance: "leading_dash" | "control";
        /**
         * @description What a parameter must be.
         * @enum {string}
         */
        ParameterType: "string" | "integer" | "boolean" | "choice";
        /** @description A playbook in one of its versions. */
        Playbook: components["schemas"]["PlaybookTerms"] & {
            /** @description When this version was pushed. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who pushed it. */
            created_by?: string;
            /** @description The request that pushed it. */
            created_by_request_id?: string;
            /** @description Its name. */
            name: string;
            /**
             * Format: int32
             * @description Counted from 1.
             */
            version: number;
        };
        /** @description Answer to `GET /playbooks`: the newest version of each, by name. */
        PlaybooksResponse: {
            /** @description The playbooks that the caller may run or see. */
            playbooks?: components["schemas"]["Playbook"][];
        };
        /** @description What a playbook says. It is the body of `PUT /playbooks/{name}`. */
        PlaybookTerms: {
            /** @description Arguments of the program, which then runs without a shell, also where the list is empty. `{{name}}` in one is that parameter's value; each stays one argument. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command: string;
            /** @description What it does. */
            description?: string | null;
            /** @description Environment; names match `[A-Za-z_][A-Za-z0-9_]*`. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in it where the command starts. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description A repository to check out first. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the token for it. */
            git_token?: string | null;
            /** @description The image it runs in; absent: the default at the time of the run. */
            image?: string | null;
            /** @description Words to find its executions by. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while it runs. */
            lock?: string | null;
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: refuse at once where it is held.
             */
            lock_wait?: number | null;
            /** @description What a run gives, by name. A value reaches the command as data, never as part of its text. */
            parameters?: {
                [key: string]: components["schemas"]["Parameter"];
            };
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; absent: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably.
             */
            retries?: number | null;
            /** @description Names of secrets to put into the environment. */
            secrets?: string[];
            /** @description Run it on a terminal of its own: its output is one stream, and nobody types. */
            terminal?: boolean;
            /**
             * Format: int64
             * @description Seconds until it is ended.
             */
            timeout?: number | null;
            /** @description What a worker must have to take its executions. */
            worker_labels?: {
                [key: string]: string;
            };
        };
        /** @description One thing that was looked at. */
        Probe: {
            /** @description What was found and, where something is wrong, what to do. */
            detail: string;
            /** @description What: `disk`, `store`, `worker`, … */
            name: string;
            /** @description How it stands. */
            status: components["schemas"]["ProbeStatus"];
        };
        /**
         * @description How a probe ended.
         * @enum {string}
         */
        ProbeStatus: "ok" | "warn" | "fail";
        /** @description Body of `POST /groups`: the group as it is to be, new or instead of what it was. */
        PutGroupRequest: {
            /** @description The e-mails of all its members. */
            members?: string[];
            /** @description Its name. */
            name: string;
        };
        /** @description Answer to `PUT /playbooks/{name}`. */
        PutPlaybookResponse: {
            /** @description What happened, for a person. */
            message: string;
            /** @description Which. */
            name: string;
            /**
             * Format: int32
             * @description The version that it has now.
             */
            version: number;
        };
        /** @description Body of `PUT /queues/{name}`. What is absent stays as it is. */
        PutQueueRequest: {
            /**
             * Format: int32
             * @description So many of it may be with workers at once, 1 to 1000; 0 takes the limit away.
             */
            concurrency?: number | null;
            /** @description Stop it, or let it go on. */
            paused?: boolean | null;
            /**
             * Format: int32
             * @description So many of each user's may be, 1 to 1000; 0 takes the limit away.
             */
            per_user?: number | null;
            /** @description Why it is stopped, for people. */
            reason?: string | null;
        };
        /** @description A named line of executions. An item of `GET /queues`. */
        Queue: {
            /**
             * Format: int32
             * @description So many of it may be with workers at once; absent: any number.
             */
            concurrency?: number | null;
            /**
             * Format: int64
             * @description How many were given up and have not been run again.
             */
            dead?: number;
            /**
             * Format: int64
             * @description How many executions wait in it.
             */
            depth?: number;
            /**
             * Format: int64
             * @description How many executions are with a worker.
             */
            in_flight?: number;
            /** @description Its name. */
            name: string;
            oldest?: components["schemas"]["Rfc3339"] | null;
            paused?: components["schemas"]["QueuePause"] | null;
            /**
             * Format: int32
             * @description So many of each user's may be; absent: any number.
             */
            per_user?: number | null;
            /**
             * Format: int64
             * @description How many are with workers under its limits; absent where it has none.
             */
            places_taken?: number | null;
            /**
             * Format: int64
             * @description How many workers that are live serve it.
             */
            workers?: number;
        };
        /** @description Who has stopped a queue. */
        QueuePause: {
            /** @description When. */
            at: components["schemas"]["Rfc3339"];
            /** @description Who. */
            by: string;
            /** @description Why, for people. */
            reason?: string | null;
        };
        /** @description Answer to `PUT /queues/{name}` and `DELETE /queues/{name}`: the terms from now on. */
        QueueTermsResponse: {
            /**
             * Format: int32
             * @description So many of it may be with workers at once.
             */
            concurrency?: number | null;
            /** @description What happened, for a person. */
            message?: string;
            /** @description The queue. */
            name: string;
            paused?: components["schemas"]["QueuePause"] | null;
            /**
             * Format: int32
             * @description So many of each user's may be.
             */
            per_user?: number | null;
        };
        /** @description Why it ended, or what it waits for. */
        Reason: {
            /** @description For a program: `exit`, `timeout`, `lock`, … */
            code: string;
            /** @description For a person. */
            message: string;
        };
        /** @description One thing that was not as it should be. */
        ReconcileIssue: {
            /** @description What was done: `repaired`, `reported` or `requires_manual_intervention`. */
            action: string;
            /** @description What was found, for a person. */
            message: string;
            /** @description Which. */
            resource_id: string;
            /** @description What kind of thing: `execution`, `lock`, `user`, `secret`, … */
            resource_type: string;
            /** @description `error` or `warning`. */
            severity: string;
        };
        /** @description What came of a reconciliation. */
        ReconcileReport: {
            /** @description Users and what they own. */
            authorizer_status?: components["schemas"]["AuthorizerStatus"];
            /** @description Executions, locks and what runs them. */
            compute_status?: components["schemas"]["ComputeStatus"];
            /**
             * Format: int64
             * @description How many could not be repaired.
             */
            error_count?: number;
            /** @description Roles. */
            identity_status?: components["schemas"]["IdentityStatus"];
            /** @description What was found, one by one. */
            issues?: components["schemas"]["ReconcileIssue"][];
            /**
             * Format: int64
             * @description How many were repaired.
             */
            reconciled_count?: number;
            /** @description Secrets. */
            secrets_status?: components["schemas"]["SecretsStatus"];
            /** @description When it was made. */
            timestamp: components["schemas"]["Rfc3339"];
        };
        /** @description Answer to `POST /health/reconcile`. */
        ReconcileResponse: {
            /** @description What came of it. */
            report: components["schemas"]["ReconcileReport"];
            /** @description `ok`. */
            status: string;
        };
        /** @description Body of `POST /admin/recover`. */
        RecoverRequest: {
            /** @description Who is to be an admin; absent: the first of the admins. */
            email?: string | null;
        };
        /** @description Answer to a recovery. It is given once. */
        RecoverResponse: {
            /** @description Their new key. Nobody can ask for it again. */
            api_key: components["schemas"]["Sensitive"];
            /** @description Who is an admin now. */
            email: string;
        };
        /** @description An execution that runs again as a new one. */
        Redriven: {
            /** @description The one that was given up. */
            execution_id: string;
            /** @description The job that was resumed for it. */
            job_id?: string | null;
            /** @description The new one; absent where a job makes it when its turn comes. */
            new_execution_id?: string | null;
        };
        /** @description Body of `POST /queues/{name}/redrive`. */
        RedriveRequest: {
            /** @description Of all, those after the last that an earlier request looked at: `next` of its answer. */
            after?: string | null;
            /** @description Only these, at most 50; absent: the oldest of all that were given up, as many as one request takes. */
            execution_ids?: string[] | null;
        };
        /** @description Answer to `POST /queues/{name}/redrive`. */
        RedriveResponse: {
            /** @description What can never run again, and is not listed as given up any more. */
            dropped?: components["schemas"]["NotRedriven"][];
            /**
             * Format: int64
             * @description How many given-up ones were not looked at, where there were more than one request takes. They are counted up to 10,000.
             */
            left?: number;
            /** @description What happened, for a person. */
            message?: string;
            /** @description Where the next request goes on for those (`after`); absent where none are left. */
            next?: string | null;
            /** @description The queue. */
            queue: string;
            /** @description What runs again. */
            redriven?: components["schemas"]["Redriven"][];
            /** @description What does not run again, and stays given up. */
            refused?: components["schemas"]["NotRedriven"][];
        };
        /** @description Body of `POST /images/register`. */
        RegisterImageRequest: {
            /**
             * Format: int32
             * @description CPU units; 1024 are one vCPU.
             */
            cpu?: number | null;
            /** @description `[registry/]name[:tag]`. */
            image: string;
            /** @description Whether it becomes the default. */
            is_default?: boolean | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory?: number | null;
            /** @description `OS/ARCHITECTURE`, such as `Linux/ARM64`. */
            runtime_platform?: string | null;
            /** @description The IAM role that starts it. */
            task_execution_role_name?: string | null;
            /** @description The IAM role of the command. */
            task_role_name?: string | null;
        };
        /** @description What a request made or changed last. Secrets are without their values. */
        RelatedResources: {
            /** @description Executions. */
            executions?: components["schemas"]["Execution"][];
            /** @description Groups. */
            groups?: components["schemas"]["Group"][];
            /** @description Images. */
            images?: components["schemas"]["Image"][];
            /** @description Playbooks. */
            playbooks?: components["schemas"]["Playbook"][];
            /** @description Rules. */
            rules?: components["schemas"]["Rule"][];
            /** @description Secrets. */
            secrets?: components["schemas"]["Secret"][];
            /** @description Users. */
            users?: components["schemas"]["User"][];
        };
        /** @description Answer to a lock taken from its holder. */
        ReleaseResponse: {
            /** @description The lock. */
            lock_name: string;
            /** @description What happens now, for a person. */
            message: string;
        };
        /** @description Answer to `DELETE /playbooks/{name}`. */
        RemovePlaybookResponse: {
            /** @description What happened, for a person. */
            message: string;
            /** @description Which. */
            name: string;
        };
        /** @description Body of `POST /users/{email}/renew`. */
        RenewInvitationRequest: {
            /**
             * Format: int64
             * @description Seconds for which the invitation can be answered, at most seven days; 15 minutes where it is absent.
             */
            expires_in?: number | null;
        };
        /** @description Body of `POST /jobs/{id}/resume`. */
        ResumeJobRequest: {
            /** @description Tasks that run something else from now on: those that failed, and those that wait for them. */
            tasks?: components["schemas"]["TaskChange"][];
        };
        /** @description Answer to `DELETE /users/{email}/keys/{prefix}`. */
        RevokeKeyResponse: {
            /** @description What became of the file in which the server keeps a key for its first admin, where it held the key that ended. */
            key_file?: string | null;
            /** @description What happened, for a person. */
            message: string;
            /** @description Which key. */
            prefix: string;
        };
        /** @description Body of `POST /users/revoke`. */
        RevokeUserRequest: {
            /**
             * Format: email
             * @description Whose rights end.
             */
            email: string;
            /** @description Their open executions are killed; otherwise they go on. */
            kill?: boolean;
        };
        /** @description Answer to a user whose rights ended. */
        RevokeUserResponse: {
            /**
             * Format: int64
             * @description How many of their jobs were cancelled.
             */
            cancelled_jobs?: number;
            /** @description Who it was. */
            email: string;
            /**
             * Format: int64
             * @description How many of their executions are being killed.
             */
            killed_executions?: number;
            /** @description What happened, also to their open executions, for a person. */
            message: string;
            /**
             * Format: int64
             * @description How many of their executions go on.
             */
            open_executions?: number;
            /**
             * Format: int64
             * @description How many of their jobs go on, and start tasks in their name.
             */
            open_jobs?: number;
        };
        /** @description Answer to `DELETE /workers/{name}`, and to `DELETE /workers/accounts/{name}`. */
        RevokeWorkerResponse: {
            /** @description What happened, for a person. */
            message?: string;
            /** @description Which account. */
            name: string;
        };
        /**
         * Format: date-time
         * @description Milliseconds since 1970, written `2026-01-03T14:22:19.640Z`.
         */
        Rfc3339: string;
        /** @description Answer to `POST /sealing-key/rotate`: every secret is sealed with a new key. */
        RotateSealingKeyResponse: {
            /** @description The id of the key that seals from now on. */
            key_id: string;
            /** @description What happened, for a person. */
            message: string;
            /**
             * Format: int64
             * @description How many secrets were sealed anew.
             */
            resealed: number;
        };
        /** @description Answer to `POST /signing-key/rotate`: a new key signs the task tokens of new leases. */
        RotateSigningKeyResponse: {
            /** @description The name of the key: when it was made, in milliseconds since 1970. */
            key_id: string;
            /** @description What happened, for a person. */
            message?: string;
        };
        /** @description A rule. It is also the body of `POST /rules`: the rule as it is to be, new or instead of what it was. */
        Rule: {
            /** @description Patterns of commands. */
            commands?: string[];
            /** @description `allow` or `deny`. */
            effect: components["schemas"]["Effect"];
            /** @description Groups it is for. */
            groups?: string[];
            /** @description Patterns of images. */
            images?: string[];
            /** @description Patterns of locks. */
            locks?: string[];
            /** @description Its name. */
            name: string;
            /** @description Patterns of playbooks. */
            playbooks?: string[];
            /** @description Patterns of queues. */
            queues?: string[];
            /** @description Why there is this rule; shown to whom it refuses. */
            reason?: string | null;
            /** @description Roles it is for. Where no user, group and role is listed it is for everybody but admins. */
            roles?: string[];
            /** @description Patterns of secrets. */
            secrets?: string[];
            /** @description E-mails of those it is for. */
            users?: string[];
        };
        /** @description Answer to a rule that was put or removed. */
        RuleResponse: {
            /** @description What happened, for a person. */
            message: string;
            /** @description Which. */
            name: string;
        };
        /** @description Answer to `GET /rules`, in the order in which they are judged. */
        RulesResponse: {
            /** @description The rules. */
            rules?: components["schemas"]["Rule"][];
        };
        /** @description Body of `POST /playbooks/{name}/run`, which answers as `POST /run` does. */
        RunPlaybookRequest: {
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: refuse at once where it is held.
             */
            lock_wait?: number | null;
            /** @description Values by parameter. A text is read as what the parameter must be. */
            parameters?: Record<string, unknown>;
            /**
             * Format: int32
             * @description Which version; absent: the newest.
             */
            version?: number | null;
        };
        /** @description Body of `POST /run`. Fields that are not known here are ignored, for other clients may send more; one that looks like a slip of a known one is refused. */
        RunRequest: {
            /** @description Arguments of the program, which then runs without a shell, also where the list is empty. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command: string;
            /** @description Environment; names match `[A-Za-z_][A-Za-z0-9_]*`. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in it where the command starts. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description A repository to check out first. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the token for it. */
            git_token?: string | null;
            /** @description A registered image. */
            image?: string | null;
            /** @description Words of the user's own to find it by. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while it runs. */
            lock?: string | null;
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: refuse at once where it is held.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; absent: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably.
             */
            retries?: number | null;
            /** @description Names of secrets to put into the environment. */
            secrets?: string[];
            /** @description Run it on a terminal of its own: its output is one stream, and nobody types. Only in the image `local`. */
            terminal?: boolean;
            /**
             * Format: int64
             * @description Seconds until it is ended.
             */
            timeout?: number | null;
            /** @description What a worker must have to take it, beside serving its queue. */
            worker_labels?: {
                [key: string]: string;
            };
        };
        /** @description Answer to `POST /run`. */
        RunResponse: {
            /** @description The command as stored. */
            command?: string;
            /** @description The new execution. */
            execution_id: string;
            /** @description The image it runs in. */
            image_id?: string;
            /** @description The web page of this execution. */
            log_url: string;
            /** @description Its status when the answer was made. */
            status: components["schemas"]["Status"];
            /** @description Where its log can be followed, with a ticket for ten minutes. */
            websocket_url?: string | null;
        };
        /** @description Answer to a secret that was made or changed. It tells nothing of the secret. */
        SaveSecretResponse: {
            /** @description What happened, for a person. */
            message: string;
        };
        /** @description Answer to `GET /executions/{id}/logs/search`. */
        SearchResponse: {
            /** @description False where the search reached its time limit before the log's end: there may be more hits from `next_line` on. */
            complete?: boolean;
            /** @description The first of them. */
            hits: components["schemas"]["Hit"][];
            /**
             * Format: int64
             * @description Where to go on with `from_line`; null once the whole log was searched.
             */
            next_line?: number | null;
            /**
             * Format: int64
             * @description How many lines match from `from_line` on: to the log's end, or as far as an incomplete search came.
             */
            total: number;
        };
        /** @description A secret, with its value where the caller may read it. */
        Secret: {
            /** @description When it was made. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who made it. */
            created_by?: string;
            /** @description The request that made it. */
            created_by_request_id?: string;
            /** @description What it is for. */
            description?: string | null;
            /** @description The environment variable that it becomes. */
            key_name?: string;
            /** @description The request that changed it last. */
            modified_by_request_id?: string;
            /** @description Its name. */
            name: string;
            /** @description Whom it belongs to. */
            owned_by?: string[];
            /** @description When it was changed last. */
            updated_at: components["schemas"]["Rfc3339"];
            /** @description Who changed it last. */
            updated_by?: string;
            /** @description Who else may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`. */
            use_by?: string[];
            value?: components["schemas"]["Sensitive"] | null;
        };
        /** @description Answer to `GET /secrets/{name}`. */
        SecretResponse: {
            /** @description The secret. */
            secret: components["schemas"]["Secret"];
        };
        /** @description Answer to `GET /secrets`, by name, without values. */
        SecretsResponse: {
            /** @description The secrets that the caller may know of. */
            secrets?: components["schemas"]["Secret"][];
            /**
             * Format: int64
             * @description How many.
             */
            total?: number;
        };
        /** @description Secrets. */
        SecretsStatus: {
            /**
             * Format: int64
             * @description How many cannot be opened.
             * @default 0
             */
            missing_count: number;
            /**
             * Format: int64
             * @description How many belong to nobody.
             * @default 0
             */
            orphaned_count: number;
            /**
             * @description Which.
             * @default []
             */
            orphaned_parameters: string[];
            /**
             * Format: int64
             * @description How many were corrected.
             * @default 0
             */
            tag_updated_count: number;
            /**
             * Format: int64
             * @description How many were looked at.
             * @default 0
             */
            total_secrets: number;
            /**
             * Format: int64
             * @description How many can be opened.
             * @default 0
             */
            verified_count: number;
        };
        /** @description A text whose debug form is `[hidden]`. It has no `Display`: whoever shows it says so with [`Sensitive::expose`]. */
        Sensitive: string;
        /** @description Body of `POST /users/{email}/role`. */
        SetRoleRequest: {
            /** @description `admin`, `operator`, `developer` or `viewer`. */
            role: string;
        };
        /** @description Answer to a changed role. */
        SetRoleResponse: {
            /** @description Whose. */
            email: string;
            /** @description What happened, for a person. */
            message: string;
            /** @description What they are now. */
            role: string;
        };
        /**
         * @description Where an execution is in its life.
         * @enum {string}
         */
        Status: "PENDING" | "STARTING" | "RUNNING" | "TERMINATING" | "SUCCEEDED" | "FAILED" | "STOPPED";
        /** @description Answer to `GET /executions/{id}/status`. */
        StatusResponse: {
            /**
             * Format: int32
             * @description How many attempts began.
             */
            attempt?: number;
            /** @description The command as stored. */
            command?: string;
            completed_at?: components["schemas"]["Rfc3339"] | null;
            /**
             * Format: double
             * @description What it cost.
             */
            cost_usd?: number | null;
            /**
             * Format: int64
             * @description Whole seconds from start to end.
             */
            duration_seconds?: number | null;
            end_reason?: components["schemas"]["Reason"] | null;
            /** @description Which execution. */
            execution_id: string;
            /**
             * Format: int32
             * @description `null` until it ended.
             */
            exit_code?: number | null;
            /** @description The image it runs in. */
            image_id?: string;
            /** @description What there is to say about that. */
            message?: string | null;
            /** @description When its command started; until then, when it was submitted. */
            started_at: components["schemas"]["Rfc3339"];
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            submitted_at?: components["schemas"]["Rfc3339"] | null;
            waiting_for?: components["schemas"]["Reason"] | null;
            /** @description Its worker has not been heard of for longer than its lease lasts; the command may still run. */
            worker_unreachable?: boolean;
        };
        /** @description A task as it is. */
        Task: {
            /**
             * Format: int32
             * @description How many attempts of its newest execution began.
             */
            attempt?: number;
            completedAt?: components["schemas"]["Rfc3339"] | null;
            /** @description The tasks that must be done before it. */
            dependsOn?: string[];
            end_reason?: components["schemas"]["Reason"] | null;
            /** @description Its newest execution. */
            executionId?: string | null;
            /** @description What it was given. */
            input?: Record<string, unknown> | null;
            /** @description What people call it. */
            name?: string;
            /** @description What it gave. */
            output?: Record<string, unknown> | null;
            /**
             * Format: int64
             * @description How large its output is, where that is too large to be shown here.
             */
            outputBytes?: number | null;
            revision?: components["schemas"]["TaskRevision"] | null;
            startedAt?: components["schemas"]["Rfc3339"] | null;
            /** @description Where it is. */
            status: string;
            /** @description Its name within its job. */
            taskId: string;
            waiting_for?: components["schemas"]["Reason"] | null;
        };
        /** @description What a resume changes of a task. */
        TaskChange: {
            /** @description Arguments of the program, which then runs without a shell, also where the list is empty. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command?: string | null;
            /** @description Environment; that of a task is added to that of the defaults. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in it where the command starts. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description A repository to check out first. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the token for it. */
            git_token?: string | null;
            /** @description A registered image. */
            image?: string | null;
            /** @description Words of the user's own to find it by; those of a task are added to those of the defaults. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while it runs; a task always waits for it. */
            lock?: string | null;
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: as long as it takes.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; absent: `default`. */
            queue?: string | null;
            /**
             * @description Whether these fields are everything that the task runs with. Otherwise what is absent stays as it is, variables and labels are added to
             *     those that the task has, and another `command` leaves out the old `args`.
             */
            replace?: boolean;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably; absent: 2.
             */
            retries?: number | null;
            /** @description Names of secrets to put into the environment. */
            secrets?: string[] | null;
            /** @description The task: one that failed, or one that waits for such a task. */
            taskId: string;
            /** @description Whether it runs on a terminal of its own: its output is one stream, and nobody types. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description Seconds until it is ended.
             */
            timeout?: number | null;
            /** @description What a worker must have to take it; those of a task are added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            };
        };
        /** @description How many tasks of a job are where. Together they are all of them. */
        TaskCounts: {
            /**
             * Format: int64
             * @description Done.
             */
            completed?: number;
            /**
             * Format: int64
             * @description Ended otherwise.
             */
            failed?: number;
            /**
             * Format: int64
             * @description Executions that have not ended.
             */
            running?: number;
            /**
             * Format: int64
             * @description Waiting for other tasks, or for their turn.
             */
            waiting?: number;
        };
        /** @description What holds for every task of a job that does not say otherwise. */
        TaskDefaults: {
            /** @description Arguments of the program, which then runs without a shell, also where the list is empty. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command?: string | null;
            /** @description Environment; that of a task is added to that of the defaults. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in it where the command starts. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description A repository to check out first. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the token for it. */
            git_token?: string | null;
            /** @description A registered image. */
            image?: string | null;
            /** @description Words of the user's own to find it by; those of a task are added to those of the defaults. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while it runs; a task always waits for it. */
            lock?: string | null;
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: as long as it takes.
             */
            lock_wait?: number | null;
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; absent: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably; absent: 2.
             */
            retries?: number | null;
            /** @description Names of secrets to put into the environment. */
            secrets?: string[] | null;
            /** @description Whether it runs on a terminal of its own: its output is one stream, and nobody types. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description Seconds until it is ended.
             */
            timeout?: number | null;
            /** @description What a worker must have to take it; those of a task are added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            };
        };
        /** @description How one execution is. Answer to `GET /health/tasks/{id}`. */
        TaskHealth: {
            /**
             * Format: int64
             * @description Milliseconds since it began.
             */
            elapsed: number;
            /** @description How it is. */
            health: components["schemas"]["HealthWord"];
            /** @description The job it belongs to. */
            jobId?: string | null;
            /** @description What that event was. */
            lastEventType?: string;
            /** @description The execution. */
            requestId: string;
            /** @description The task of that job. */
            taskId?: string | null;
            /**
             * Format: int64
             * @description Milliseconds since its last event.
             */
            timeSinceLastEvent: number;
            /** @description The worker that runs it. */
            workerId?: string | null;
        };
        /** @description Answer to `GET /health/tasks`. */
        TaskHealthResponse: {
            checkedAt?: components["schemas"]["Rfc3339"] | null;
            /** @description How many are how. */
            summary: components["schemas"]["TaskHealthSummary"];
            /** @description Each of them, the worst first. */
            tasks?: components["schemas"]["TaskHealth"][];
        };
        /** @description How many running executions are how. */
        TaskHealthSummary: {
            /**
             * Format: int64
             * @description Quiet for long.
             */
            critical?: number;
            /**
             * Format: int64
             * @description Heard of a short while ago.
             */
            healthy?: number;
            /**
             * Format: int64
             * @description Running for very long.
             */
            overtime?: number;
            /**
             * Format: int64
             * @description All that run.
             */
            totalProcessing?: number;
            /**
             * Format: int64
             * @description Quiet for a while.
             */
            warning?: number;
        };
        /** @description A task that is asked for. */
        TaskRequest: {
            /** @description Arguments of the program, which then runs without a shell, also where the list is empty. */
            args?: string[] | null;
            /** @description A shell command, or a program where `args` is given. */
            command?: string | null;
            /** @description The tasks that must be done before it. */
            dependsOn?: string[];
            /** @description Environment; that of a task is added to that of the defaults. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in it where the command starts. */
            git_path?: string | null;
            /** @description Its branch, tag or commit. */
            git_ref?: string | null;
            /** @description A repository to check out first. */
            git_repo?: string | null;
            /** @description The name of the secret that holds the token for it. */
            git_token?: string | null;
            /** @description A registered image. */
            image?: string | null;
            /** @description What it finds as `input` in the file that `RUNVOY_INPUT` names. */
            input?: Record<string, unknown> | null;
            /** @description Words of the user's own to find it by; those of a task are added to those of the defaults. */
            labels?: {
                [key: string]: string;
            };
            /** @description A lock to hold while it runs; a task always waits for it. */
            lock?: string | null;
            /**
             * Format: int64
             * @description Seconds to wait in line for the lock; absent: as long as it takes.
             */
            lock_wait?: number | null;
            /** @description What people call it; absent: its id. */
            name?: string | null;
            /**
             * Format: int32
             * @description 1 (first) to 5 (last).
             */
            priority?: number | null;
            /** @description The queue; absent: `default`. */
            queue?: string | null;
            /**
             * Format: int32
             * @description Further attempts after one that failed retryably; absent: 2.
             */
            retries?: number | null;
            /** @description Names of secrets to put into the environment. */
            secrets?: string[] | null;
            /** @description Its name within its job. */
            taskId: string;
            /** @description Whether it runs on a terminal of its own: its output is one stream, and nobody types. */
            terminal?: boolean | null;
            /**
             * Format: int64
             * @description Seconds until it is ended.
             */
            timeout?: number | null;
            /** @description What a worker must have to take it; those of a task are added to those of the defaults. */
            worker_labels?: {
                [key: string]: string;
            };
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
        /** @description One thing that the server noted. */
        TraceLog: {
            /** @description The event's id. */
            event_id?: string;
            /** @description What happened, for a person. */
            message: string;
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            timestamp: number;
        };
        /** @description Answer to `GET /trace/{request_id}`. */
        TraceResponse: {
            /** @description What the server noted of it, in order. */
            logs?: components["schemas"]["TraceLog"][];
            /** @description What it made or changed last. */
            related_resources?: components["schemas"]["RelatedResources"];
        };
        /** @description Body of `PUT /secrets/{name}`. What is absent stays as it is. */
        UpdateSecretRequest: {
            /** @description What it is for. */
            description?: string | null;
            /** @description The environment variable that it becomes. */
            key_name?: string | null;
            /** @description Everybody who may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`. */
            use_by?: string[] | null;
            value?: components["schemas"]["Sensitive"] | null;
        };
        /** @description A user. */
        User: {
            claim_expires_at?: components["schemas"]["Rfc3339"] | null;
            /** @description When they were invited. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who invited them. */
            created_by?: string | null;
            /** @description The request that made them. */
            created_by_request_id?: string;
            /** @description Who. */
            email: string;
            /** @description The groups they are in. */
            groups?: string[];
            /** @description Their keys, oldest first. */
            keys?: components["schemas"]["Key"][];
            last_used?: components["schemas"]["Rfc3339"] | null;
            /** @description The request that changed them last. */
            modified_by_request_id?: string;
            /** @description None of their keys is accepted any more. */
            revoked?: boolean;
            /** @description `admin`, `operator`, `developer` or `viewer`. */
            role?: string;
        };
        /** @description Answer to `GET /users`, by e-mail. */
        UsersResponse: {
            /** @description The users. */
            users?: components["schemas"]["User"][];
        };
        /** @description A rule that had a say in one case. */
        Verdict: {
            /** @description What it came to. */
            effect: components["schemas"]["Effect"];
            /** @description The rule's name, or `role:NAME` for what the role itself says. */
            rule: string;
            /** @description What in the case made it so, for a person. */
            why: string;
        };
        /** @description Answer to `GET /whoami`. */
        Whoami: {
            /** @description The user. */
            email: string;
            /** @description The groups they are in. */
            groups?: string[];
            key_expires_at?: components["schemas"]["Rfc3339"] | null;
            /** @description The first characters of the key; absent where the socket's peer is the credential. */
            key_prefix?: string | null;
            /** @description `admin`, `operator`, `developer` or `viewer`. */
            role: string;
            /** @description The names of the rules that narrow their role. */
            rules?: string[];
            /** @description The server's version. */
            server_version?: string;
        };
        /** @description A worker as it was last heard of. An item of `GET /workers`. */
        Worker: {
            /** @description The account whose key it showed; absent for one that lives inside a server. */
            account?: string | null;
            /**
             * Format: int32
             * @description How many it runs at once.
             */
            concurrency?: number;
            /** @description The admin who drains it, until one lets it go on. */
            drained_by?: string | null;
            /** @description It finishes what it runs and takes nothing new: it is about to stop, or an admin drains it. */
            draining?: boolean;
            /** @description The machine it is on. */
            host?: string;
            /** @description It lives inside a server. */
            in_process?: boolean;
            /** @description What executions can ask for. */
            labels?: {
                [key: string]: string;
            };
            /** @description It was heard of within the last 30 seconds, or holds a lease and says nothing else of itself. */
            live?: boolean;
            /** @description What it calls itself. */
            name: string;
            /** @description The queues it serves. */
            queues?: string[];
            /** @description How it runs commands. */
            runner?: string;
            /**
             * Format: int32
             * @description How many executions it runs now.
             */
            running?: number;
            /** @description When it was last heard of. */
            seen_at: components["schemas"]["Rfc3339"];
            /** @description When it started. */
            since: components["schemas"]["Rfc3339"];
            /** @description The program's version. */
            version?: string;
            /** @description One start of it: a worker that is started again is another one. */
            worker_id: string;
        };
        /** @description An account of workers. An item of `GET /workers/accounts`. */
        WorkerAccount: {
            /** @description When. */
            created_at: components["schemas"]["Rfc3339"];
            /** @description Who made it. */
            created_by?: string;
            /** @description What it is for. */
            description?: string | null;
            /** @description The fingerprint of its public key: what `kid` of its tokens says. */
            fingerprint?: string | null;
            /** @description Its id: another one when the name is used again. */
            id: string;
            /** @description The first characters of its key; absent where it has a public key. */
            key_prefix?: string | null;
            /** @description Since when it has this key. */
            keyed_at: components["schemas"]["Rfc3339"];
            last_used?: components["schemas"]["Rfc3339"] | null;
            /** @description What else a worker may do: `submit`, and read and end what it submitted. */
            may?: string[];
            /** @description Its name. */
            name: string;
            /** @description The queues it may serve; none means every queue. */
            queues?: string[];
            /** @description Its key is not accepted any more. */
            revoked?: boolean;
            /** @description What it may do: `worker`, or for a public key `viewer`, `developer` or `operator`. */
            role?: string;
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
    home: {
        parameters: {
            query?: {
                /** @description The execution */
                execution_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": unknown;
                };
            };
        };
    };
    getLinkedLogOfPage: {
        parameters: {
            query?: {
                /** @description Only lines after this time */
                since?: string;
                /** @description The link's token, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, at most some megabytes at once */
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
                /** @description What they would do: run, read, kill, manage_users, … */
                action: "run" | "read" | "kill" | "redrive" | "share_log" | "read_locks" | "release_lock" | "read_images" | "manage_images" | "read_secrets" | "write_secrets" | "rotate_sealing_key" | "read_playbooks" | "manage_playbooks" | "manage_users" | "manage_keys" | "explain_access" | "read_audit" | "trace" | "reconcile" | "read_queues" | "manage_queues" | "manage_workers" | "lease" | "diagnose" | "metrics" | "backup" | "know_self";
                /** @description The command of a run */
                command?: string;
                /** @description The execution to read, share or end */
                execution?: string;
                /** @description The image of a run */
                image?: string;
                /** @description The lock of a run */
                lock?: string;
                /** @description The playbook to run */
                playbook?: string;
                /** @description The queue of a run */
                queue?: string;
                /** @description A secret of a run, or the one to see or write */
                secret?: string;
                /** @description Who: the caller, or for an admin anybody */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What decides */
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
            /** @description The key, which is shown only here */
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
    testAlert: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The message was taken */
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
    listAudit: {
        parameters: {
            query?: {
                /** @description Only this action, or all of a resource: executions.kill, or executions */
                action?: string;
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many */
                limit?: number;
                /** @description Only at this time or later */
                since?: string;
                /** @description Only those with this text in user, action, entity, command, result, address or details, in any case of letters */
                text?: string;
                /** @description Only before this time */
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
                    /** @description Where the next page begins; absent after the last one. A page may be empty and not the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEvent"][];
                };
            };
        };
    };
    exportAudit: {
        parameters: {
            query?: {
                /** @description Only this action, or all of a resource: executions.kill, or executions */
                action?: string;
                /** @description Only at this time or later */
                since?: string;
                /** @description Only those with this text in user, action, entity, command, result, address or details, in any case of letters */
                text?: string;
                /** @description Only before this time */
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
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": unknown;
                };
            };
        };
    };
    verifyAudit: {
        parameters: {
            query?: {
                /** @description Compare all kept state with what the events say, too */
                state?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found */
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
    backup: {
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
            /** @description The copy is complete */
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
    claimByGet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The 32 characters of an invitation */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, which is shown only here */
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
    claim: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The 32 characters of an invitation */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, which is shown only here */
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
    doctor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was looked at */
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
                /** @description Only of this app */
                app?: string;
                /** @description Go on after this X-Next-Cursor, or after this cursor of a stream's line */
                cursor?: string;
                /** @description Only about this: TASK:ID for an execution, JOB:ID for a job */
                entity?: string;
                /** @description A stream of lines (application/x-ndjson) that goes on until it is closed */
                follow?: boolean;
                /** @description Only at this time or later; a stream begins there, else now */
                from?: string;
                /** @description At most so many, 100 where absent; not for a stream */
                limit?: number;
                /** @description Which come first; a stream goes forward */
                order?: "asc" | "desc";
                /** @description With what was too large for an event in it, instead of _s3Overflow; large inputs of single tasks stay references */
                resolve?: boolean;
                /** @description Only of this tenant; together with an app or an entity it needs a type */
                tenant?: string;
                /** @description Only before this time; not for a stream */
                to?: string;
                /** @description Only of this type */
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
                    /** @description Where the next page begins; absent after the last one. A page may be empty and not the last */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description Only those of this job */
                job?: string;
                /** @description At most so many, 10 where absent or empty, and never more than 10000; a page that reaches 16 MiB ends there, shorter and with a cursor; 0 means all of them, as they are read */
                limit?: number | string;
                /** @description Only those that asked for this lock */
                lock?: string;
                /** @description Only those of this queue */
                queue?: string;
                /** @description Only those submitted at this time or later */
                since?: string;
                /** @description Only these statuses, with commas between them; all where empty */
                status?: string;
                /** @description Only those with this text in their command, labels, id or end reason, in any case of letters */
                text?: string;
                /** @description Only those submitted before this time */
                until?: string;
                /** @description Only those that this user submitted */
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
                    /** @description How many executions were looked at for a text; a page that is not full may have a next one */
                    "X-Looked-At"?: string;
                    /** @description Where the next page begins; absent after the last one, and where limit is 0 */
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
                /** @description Say what would happen and do nothing */
                dry_run?: boolean;
            };
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description What would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description It is recorded, durably, and will run */
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
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
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
    deleteExecution: {
        parameters: {
            query?: {
                /** @description Without the time that it would get to end by itself */
                force?: boolean;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is being ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KillResponse"];
                };
            };
            /** @description It had ended before */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events; a page may hold fewer than asked for and not be the last */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
        };
    };
    kill: {
        parameters: {
            query?: {
                /** @description Without the time that it would get to end by itself */
                force?: boolean;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
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
            /** @description It is being ended */
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
    createLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link; it ends with the key or the user that made it */
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
                /** @description json where absent */
                format?: "json" | "text" | "raw" | "ndjson";
                /** @description From this line on */
                from_line?: number;
                /** @description At most so many lines; 0 means all */
                limit?: number;
                /** @description Only lines that hold this text */
                search?: string;
                /** @description Only this stream */
                stream?: "stdout" | "stderr" | "platform";
                /** @description The last so many lines; not together with from_line */
                tail?: number;
                /** @description A signed link's token, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines; null while it runs, unless lines were chosen */
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
            /** @description A range of the command's very bytes */
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
                /** @description Where to begin */
                from_line?: number;
                /** @description How many hits to return; 100 where absent */
                limit?: number;
                /** @description What to look for */
                q: string;
                /** @description It is a regular expression */
                regex?: boolean;
                /** @description Only this stream */
                stream?: "stdout" | "stderr" | "platform";
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found */
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
    rerun: {
        parameters: {
            query?: never;
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is recorded, durably, and will run */
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
    getStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its status */
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
    stream: {
        parameters: {
            query?: {
                /** @description Binary frames of many lines, for runvoy's own clients */
                batch?: boolean;
                /** @description Also say when the status changes */
                events?: "status";
                /** @description Go on after this event_id, or after this line number; from the first line where empty */
                last_event_id?: string;
                /** @description The ticket of a websocket_url */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The stream follows */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    wait: {
        parameters: {
            query?: {
                /** @description Seconds to wait at most; 60 where absent, and never more than 600 */
                timeout?: number;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its status then, which may still be an open one */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
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
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is */
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
    removeGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The group; its name may hold slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
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
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is */
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
    reconcile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found and what was done about it */
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
    taskHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many are how, and each of them */
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
    taskHealthOf: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The execution: its id, or six or more digits of its beginning or end */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How it is */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The images, by id */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The image: its id, or its name with or without a tag; it may hold slashes and colons */
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
                /** @description The image: its id, or its name with or without a tag; it may hold slashes and colons */
                image: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is no longer registered */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is registered */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; 50 where absent */
                limit?: number;
                /** @description Only those submitted at this time or later */
                since?: string;
                /** @description Only these statuses, with commas between them */
                status?: string;
                /** @description Only those that this user submitted */
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
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description All of it is recorded, durably; what waits for nothing is on its way */
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
                /** @description 0: only the counts */
                tasks?: number;
            };
            header?: never;
            path: {
                /** @description The job */
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
                /** @description The job */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is cancelled */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The job */
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
            /** @description It goes on */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The job */
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
            /** @description They are part of it */
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
                /** @description With what was too large for an event in it, instead of _s3Overflow; large inputs of single tasks stay references */
                resolve?: boolean;
            };
            header?: never;
            path: {
                /** @description The job: its id, or six or more hex digits that begin or end it and no other */
                id: string;
                /** @description The task's taskId */
                task: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events; none while it waits for its dependencies */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
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
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The lock; its name may hold slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is free, or the first in line holds it */
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
                /** @description Only lines after this time */
                since?: string;
                /** @description The link's token, where no header can be sent */
                token?: string;
            };
            header?: never;
            path: {
                /** @description The execution: its id, or six or more hex digits that begin or end it and no other */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, at most some megabytes at once */
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
    apiMetrics: {
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
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI document */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
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
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description An older version of it; those of one that was removed are gone */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The playbook */
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
                /** @description The playbook */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlaybookTerms"];
            };
        };
        responses: {
            /** @description It is the newest version now */
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
    removePlaybook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The playbook */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
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
                /** @description Say what would happen and do nothing */
                dry_run?: boolean;
            };
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The playbook */
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
            /** @description What would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description It is recorded, durably, and will run */
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
    listQueues: {
        parameters: {
            query?: {
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queues; their numbers are those of everybody's executions */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The queue */
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
            /** @description Its terms from now on */
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
    removeQueueTerms: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The queue */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has none any more */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; 50 where absent */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The queue */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Those that the caller may see */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"][];
                };
            };
        };
    };
    redrive: {
        parameters: {
            query?: never;
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The queue */
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
            /** @description What became of each; where some are left, `next` as `after` of another request goes on with them */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules in the order in which they are judged: those that deny, then those that allow, each by name */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rule"];
            };
        };
        responses: {
            /** @description It is, from the next run on */
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
    removeRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The rule; its name may hold slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
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
    run: {
        parameters: {
            query?: {
                /** @description Say what would happen and do nothing */
                dry_run?: boolean;
            };
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description What would happen; nothing was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRunResponse"];
                };
            };
            /** @description It is recorded, durably, and will run */
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
    rotateSealingKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every secret is sealed with it, and keys that seal nothing are gone */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secrets, by name; `total` counts those of all pages */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is kept, sealed */
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
                /** @description The secret; its name may hold slashes */
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
                /** @description The secret; its name may hold slashes */
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
            /** @description It is changed */
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
                /** @description The secret; its name may hold slashes */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
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
            /** @description It signs for leases made in a minute and later; leases that are held go on */
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
    trace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The request, as its answer's X-Request-ID named it */
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was noted of it, and what it is about */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The users, by e-mail */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description Whose: one's own e-mail, or for an admin anybody's */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Whose: one's own e-mail, or for an admin anybody's */
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
            /** @description The key, which is shown only here */
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
                /** @description The key that this call shows takes its place, also in the file where the server keeps a key for its first admin */
                replaced?: boolean;
            };
            header?: never;
            path: {
                /** @description Whose: one's own e-mail, or for an admin anybody's */
                email: string;
                /** @description Its first characters, as the list shows them */
                prefix: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It works no longer */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Whose: one's own e-mail, or for an admin anybody's */
                email: string;
                /** @description Its first characters, as the list shows them */
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
            /** @description The key, which is shown only here */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Who was invited */
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
            /** @description The token before it works no longer; the new one is shown only here */
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
    setRole: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Who */
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
            /** @description They are */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description They are invited; the token is shown only here */
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
            /** @description No key of theirs works any more */
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
            /** @description The caller */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workers */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is made; a key is shown only here */
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
                /** @description The account */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its key works no longer, also where it is in use */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is given nothing new, also after a restart, until it is resumed */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It takes work */
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
                /** @description Go on where the page with this X-Next-Cursor ended */
                cursor?: string;
                /** @description At most so many; all where absent */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The accounts */
            200: {
                headers: {
                    /** @description Where the next page begins; absent after the last one */
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
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
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
            /** @description It is made; a key is shown only here */
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
                /** @description The account */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its key works no longer, also where it is in use */
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
    rotateWorker: {
        parameters: {
            query?: never;
            header?: {
                /** @description The client's own key for this request: a repeat within 24 h makes nothing new */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The account */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has another key, which is shown only here */
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
    pageAsset: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name, which changes with its content */
                asset: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/javascript": unknown;
                };
            };
        };
    };
    pageIcon: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The icon */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/svg+xml": unknown;
                };
            };
        };
    };
    jobPage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The job */
                job: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    livez: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does */
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
    logPage: {
        parameters: {
            query?: {
                /** @description The execution */
                execution_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": unknown;
                };
            };
        };
    };
    metrics: {
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
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It can */
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
