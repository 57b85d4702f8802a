"""Rules that no schema can say: between the fields of a request, and about what this server has.

schemathesis loads this file. A request that the document allows is made to follow these rules, so
that the server must accept it. Requests that the document forbids stay as they are.
"""

import itertools

import schemathesis

REQUESTS = itertools.count()
PATTERNS = ("commands", "images", "locks", "queues", "secrets", "playbooks")


def drop(body, *fields):
    for field in fields:
        body.pop(field, None)


def command(body):
    """A run, a playbook, a task or the defaults of tasks.

    The server has no images and no secrets, and clones from no private network.
    """
    drop(body, "image", "secrets", "git_token")
    if body.get("git_repo") is not None:
        body["git_repo"] = "https://example.com/team/tools.git"
    if body.get("lock") is None:
        drop(body, "lock_wait")
    if body.get("git_repo") is None:
        drop(body, "git_ref", "git_path")


def job(body):
    """Ids are unique within a job, and a task depends on those of the same job."""
    drop(body, "requestId")
    request = next(REQUESTS)
    command(body.get("defaults") or {})
    for number, task in enumerate(body["tasks"]):
        command(task)
        task["taskId"] = f"task-{request}-{number}"
        task["dependsOn"] = [f"task-{request}-{number - 1}"] if number else []
        if task.get("command") is None:
            task["command"] = "true"


def resume(body):
    """A task is changed once, and one that is replaced says what it runs."""
    for number, change in enumerate(body.get("tasks") or []):
        command(change)
        change["taskId"] = f"task-{number}"
        if change.get("replace") and change.get("command") is None:
            change["command"] = "true"


def whole(value):
    """Integers are written without a fraction; JSON Schema takes 5.0 for one, too."""
    if isinstance(value, dict):
        return {name: whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def run_playbook(body):
    """The playbook says which parameters there are, and whether there is a lock to wait for."""
    body["parameters"] = {}
    drop(body, "lock_wait")


def image(body):
    """The built-in image cannot be registered."""
    if body["image"] == "local":
        body["image"] = "alpine"


def playbook(body):
    """Parameters have rules by their type, and arguments name them."""
    command(body)
    drop(body, "parameters")
    body["args"] = None


def user(body):
    """A key must be hard to guess."""
    drop(body, "api_key")


def worker(body):
    """Other roles, and the right to submit, need a public key."""
    drop(body, "public_key", "role", "may")
    if not body.get("name"):
        body["name"] = "worker"


def rule(body):
    """A rule does something; a deny rule for playbooks lists nothing else."""
    if body["effect"] == "deny":
        drop(body, "playbooks")
        body["roles"] = ["viewer"]
    elif not any(body.get(field) for field in PATTERNS):
        body["commands"] = ["*"]


def secret(body):
    """A change changes something."""
    if all(body.get(field) is None for field in ("key_name", "value", "description", "use_by")):
        body["description"] = "changed"


def queue(body):
    """A reason is for a pause."""
    if body.get("paused") is not True:
        drop(body, "reason")


def redrive(body):
    """Either named dead letters, or where an earlier request ended."""
    if body.get("execution_ids") is not None:
        drop(body, "after")


BODIES = {
    "runCommand": command,
    "createExecution": command,
    "dryRunCommand": command,
    "createJob": job,
    "addTasks": job,
    "resumeJob": resume,
    "putPlaybook": playbook,
    "runPlaybook": run_playbook,
    "dryRunPlaybook": run_playbook,
    "registerImage": image,
    "createUser": user,
    "createWorker": worker,
    "createWorkerAccount": worker,
    "putRule": rule,
    "updateSecret": secret,
    "putQueue": queue,
    "redriveDeadLetters": redrive,
}


@schemathesis.hook
def map_case(context, case):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return case
    operation = case.operation.definition.raw["operationId"]
    if operation in BODIES and isinstance(case.body, dict):
        BODIES[operation](case.body)
    if isinstance(case.body, dict):
        case.body = whole(case.body)
    query = case.query or {}
    if operation == "getLogs" and "tail" in query:
        drop(query, "from_line")
    # No image is registered.
    if operation == "explainAccess":
        drop(query, "image")
    # Few combinations have an index.
    if operation == "queryEvents" and "type" not in query:
        drop(query, "app", "entity", "tenant")
    return case
