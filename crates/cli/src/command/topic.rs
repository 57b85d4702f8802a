//! Help that belongs to no single command.

/// `help exit-codes`.
pub const EXIT_CODES: &str = "\
Exit codes

  `run`, `rerun`, `playbook run` and `wait` exit with the command's exit code:

    0          it succeeded
    1 to 255   its own exit code; 128 + N for signal N
    124        it was stopped by --timeout
    126, 127   it is not executable; there is no such program
    130        it was killed
    125        it has no exit code (see `runvoy status ID`), or runvoy itself
               failed: no server, refused, connection lost

  Every other command:

    0          success
    1          it failed; `audit verify`: the audit trail is not intact;
               `doctor`, `health reconcile`: a problem was found;
               `run --dry-run`: the run would be refused;
               `job … --follow`: the job did not complete;
               `health tasks`: an execution is critical or overtime;
               `access explain`: denied;
               `logs --search`, `job logs --search`: no match

  All commands:

    0          the reader of the pipe closed it; the execution keeps running
    2          wrong usage or configuration; not confirmed, or no terminal to
               confirm on; --confirm is missing or names another profile
    4          not authenticated: no API key, or not accepted
    130        interrupted with Ctrl-C; the execution keeps running
";

/// `help environment`.
pub const ENVIRONMENT: &str = "\
Environment and files

  Flags override variables, variables the project file, and the project file
  the user file. `runvoy config show --origin` shows where values come from.

    RUNVOY_API_ENDPOINT      server URL [default: the local server]
    RUNVOY_API_KEY           API key
    RUNVOY_API_KEY_FILE      file with the API key
    RUNVOY_CA_FILE           additional CA certificates
    RUNVOY_DATA_DIR          use the local server of this data directory
    RUNVOY_PROFILE           profile of the user file
    RUNVOY_WEB_URL           URL of the web page, for links
    RUNVOY_PROMPT_DISABLED   never prompt; fail instead
    NO_COLOR                 no color
    CLICOLOR_FORCE=1         color in pipes, too
    TERM=dumb                no color and no spinner
    DEBUG=api                show requests, as -vv does
    CI                       no hint about servers of another release

    ~/.runvoy/config.yaml    user file: api_endpoint, api_key, web_url, ca_file,
                             also under profiles.NAME; profile;
                             profiles.NAME.confirm: require NAME for changes
    .runvoy/project.yaml     project file, here or in a parent directory:
                             profile, but no endpoint and no key
    .runvoy/NAME.yaml        playbook NAME of the project
    ~/.runvoy/NAME.yaml      playbook NAME of the user

  A saved key is only sent to the server that it was saved for. Keys, tokens
  and secrets are read from files, stdin or a hidden prompt, never from flags.

  On a terminal, commands that cannot be undone ask first; --yes confirms them.
  Without a terminal, `kill`, `job cancel` and `keys rotate` do not ask, and
  the others need --yes. A profile with `confirm` needs --confirm NAME.
";

/// `help formatting`.
pub const FORMATTING: &str = "\
Formatting

  Data goes to stdout, everything else to stderr.

    -o table     for people; fits the terminal: short ids, ages, cut columns;
                 in a pipe whole ids and times, and nothing is cut
    -o wide      on a terminal the same as in a pipe
    -o json      the objects of the API; a list is an array (same as --json)
    -o yaml      the same in YAML
    -o name      only ids or names, one per line; of what is shown only once,
                 such as a new key, the value itself
    --jq FILTER  JSON through a jq filter; strings are printed without quotes:
                 runvoy list --jq '.[].execution_id'

  Streams (`run --json`, `logs --json`) are JSON lines, written as they come;
  they have neither YAML nor names. The first line of `run --json` has
  execution_id, status and log_url. The output of a command reaches a pipe byte
  for byte. On a terminal only colors pass; --raw passes everything.
";
