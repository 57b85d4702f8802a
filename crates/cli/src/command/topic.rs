//! Help that belongs to no single command.

/// `help exit-codes`.
pub const EXIT_CODES: &str = "\
Exit codes

  `run`, `rerun`, `playbook run` and `wait` return the command's own exit code,
  unchanged:

    0          it succeeded
    1 to 255   what the command returned; a signal is 128 + its number
    124        it ran into its --timeout
    126, 127   it cannot be executed; there is no such program
    130        it was killed
    125        it left no exit code (see `runvoy status ID`),
               or runvoy itself failed: no server, refused, lost

  Every other command:

    0          done
    1          it failed; `audit verify`: the audit trail is not whole;
               `doctor`, `health reconcile`: something is wrong;
               `run --dry-run`: the run would be refused;
               `job … --follow`: the job did not complete;
               `health tasks`: something is critical or overtime;
               `access explain`: denied;
               `logs --search`, `job logs --search`: no line holds it

  All commands:

    0          the reader of a pipe has enough; what was submitted goes on
    2          wrong usage or configuration; a question was answered with no,
               or could not be asked; --confirm is missing or names another
               profile
    4          not authenticated: there is no API key, or it is not accepted
    130        interrupted with Ctrl-C; what was submitted goes on
";

/// `help environment`.
pub const ENVIRONMENT: &str = "\
Environment and files

  A flag is stronger than a variable, a variable than the project file, the
  project file than the user file. `runvoy config show --origin` tells which
  one won.

    RUNVOY_API_ENDPOINT      server: http://HOST:PORT, https://HOST or
                             unix:/PATH; none: the local server
    RUNVOY_API_KEY           API key
    RUNVOY_API_KEY_FILE      file that holds it
    RUNVOY_CA_FILE           certificates to trust beside the system's
    RUNVOY_DATA_DIR          talk to the local server of this data directory,
                             whatever the files say; default ~/.runvoy/data
    RUNVOY_PROFILE           profile of the user file; see `runvoy profile`
    RUNVOY_WEB_URL           address of the web page
    RUNVOY_PROMPT_DISABLED   never ask; fail instead
    NO_COLOR                 no colours
    CLICOLOR_FORCE=1         colours also in a pipe
    TERM=dumb                neither colours nor spinner
    DEBUG=api                show requests, as -vv does
    CI                       servers of another release are not remarked on
    HOME                     where ~/.runvoy is

    ~/.runvoy/config.yaml    user file: api_endpoint, api_key, web_url, ca_file,
                             also under profiles.NAME; profile;
                             profiles.NAME.confirm: true asks for NAME before
                             anything that changes
    .runvoy/project.yaml     project file, here or above: profile, and never an
                             endpoint or a key
    .runvoy/NAME.yaml        playbook NAME of the project, here or above
    ~/.runvoy/NAME.yaml      playbook NAME of the user, hidden by the project's
    ~/.runvoy/skew/          when a server of another release was remarked on

  A key belongs to the server that it was stored with, and is never sent to
  another one. Keys, tokens and values of secrets are read from files, from
  stdin or from a hidden prompt; no flag takes one.

  What cannot be undone asks at a terminal, unless --yes is given. Without a
  terminal `kill`, `job cancel` and `keys rotate` go ahead, as scripts expect;
  what takes something away from others needs --yes. A profile with `confirm`
  has its name typed, or given as --confirm NAME; --yes does not answer that.
";

/// `help formatting`.
pub const FORMATTING: &str = "\
Formatting

  Data is written to stdout, everything else to stderr.

    -o table     for people; the last column is cut to the width of a terminal,
                 and not at all in a pipe
    -o json      the same as --json: the objects of the API, with their field
                 names; a list is a bare array of them
    -o yaml      the same in YAML
    -o name      only ids or names, one a line; of what is shown once, such as
                 a new key, the thing itself
    --jq FILTER  JSON through a filter in the language of jq; texts come out
                 without quotes: runvoy list --jq '.[].execution_id'

  Streams (`run --json`, `logs --json`) are written as one JSON object a line,
  flushed as they come; they have neither YAML nor names. The first line of
  `run --json` has execution_id, status and log_url. What a command wrote
  reaches a pipe byte for byte. On a terminal only colours pass; --raw lets
  everything through.
";
