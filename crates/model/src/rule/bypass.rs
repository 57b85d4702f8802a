//! The ways around a command rule that people know: none may get `rm` past an allow-list of other commands, or past a deny of it. That is
//! what the guard rail promises; what it cannot promise is in the module above and in `docs/rules.md`.

use super::*;

const TEXTS: &[&str] = &[
    // As it is, and in other places of a text.
    "rm x",
    "rm -rf /",
    "rm\tx",
    " rm x",
    "rm",
    "ls; rm x",
    "ls;rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls & rm x",
    "ls&rm x&",
    "ls\nrm x",
    "ls\r\nrm x",
    "rm x #",
    "! rm x",
    "if true; then rm x; fi",
    "while rm x; do ls; done",
    "{ rm x; }",
    "(rm x)",
    "f() { rm x; }; f",
    "time rm x",
    "A=b rm x",
    "A=b C=d /bin/rm x",
    // Through another program.
    "env rm x",
    "env A=b rm x",
    "env -i rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "busybox rm x",
    "/bin/busybox rm x",
    "toybox rm x",
    "sudo rm x",
    "sudo -u a rm x",
    "sudo -- rm x",
    "nice -n 5 rm x",
    "nohup rm x",
    "timeout 5 rm x",
    "stdbuf -o0 rm x",
    "setsid rm x",
    "xargs rm",
    "ls | xargs rm",
    "ls | xargs -n1 rm -f",
    "find . -exec rm {} +",
    "find . -type f -exec rm -f x ';'",
    "command rm x",
    "builtin exec rm x",
    "exec rm x",
    "exec -a ls rm x",
    "chroot / rm x",
    "unshare rm x",
    "ld.so /bin/rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "watch rm x",
    "watch 'ls; rm x'",
    "flock l rm x",
    "flock l -c 'rm x'",
    "su -c 'rm x'",
    "su a -c 'rm x'",
    "su --command='rm x' a",
    "runuser -c 'rm x' a",
    "script -c 'rm x' f",
    "script -qc'rm x' f",
    "ssh host rm x",
    "ssh host 'ls; rm x'",
    "ssh -o ProxyCommand='rm x' host",
    "parallel rm ::: x",
    "trap 'rm x' EXIT",
    "coproc rm x",
    // Through a shell.
    "sh -c 'rm x'",
    "sh -c \"rm x\"",
    "/bin/sh -c 'rm x'",
    "bash -c 'rm x'",
    "bash -lc 'rm x'",
    "bash -l -c 'rm x'",
    "bash --norc -c 'rm x'",
    "bash -o errexit -c 'rm x'",
    "bash -euo pipefail -c 'ls && rm x'",
    "dash -c 'ls; rm x'",
    "zsh -c 'rm x'",
    "zsh -c '=rm x'",
    "ksh93 -c 'rm x'",
    "busybox sh -c 'rm x'",
    "env -i sh -c 'ls; rm x'",
    "sudo sh -c 'ls;rm x'",
    "sh -c 'sh -c \"ls; rm x\"'",
    "sh -c 'r\"\"m x'",
    "sh -c 'r$@m x'",
    "sh -c '$0 x' rm",
    "sh -c '\"$@\"' _ rm x",
    "fish -c 'rm x'",
    "fish --command='ls; rm x'",
    "eval rm x",
    "eval 'rm x'",
    "eval 'ls; rm' x",
    "eval \"r\"\"m x\"",
    "eval 'r''m' x",
    "eval eval 'ls; rm x'",
    "echo rm x | sh",
    "echo cm0geA== | base64 -d | sh",
    "printf 'r%s x' m | bash",
    "echo cm0geA== | base64 -d | bash -s",
    "echo cm0geA== | base64 -d | bash -x",
    "echo cm0geA== | base64 -d | sh /dev/stdin",
    "echo cm0geA== | base64 -d | sudo bash",
    "echo cm0geA== | base64 -d | while true; do sh; done",
    "sh <<< 'rm x'",
    "sh <<E\nrm x\nE",
    "cat <<E | sh\nrm x\nE",
    "bash <(echo rm x)",
    "source <(echo rm x)",
    ". /dev/stdin <<< rm",
    "python3 -c 'import os; os.system(\"rm x\")'",
    "perl -e 'system q(rm x)'",
    "perl -ne 'system q(rm x)' f",
    "ruby -e 'exec %w(rm x)'",
    "node --eval 'x'",
    "echo x | base64 -d | python3",
    "php8.2 -r 'x'",
    // Written otherwise.
    "/bin/rm x",
    "/usr/bin/rm x",
    "//bin//rm x",
    "/bin/../bin/rm x",
    "./rm x",
    "../../bin/rm x",
    "~/rm x",
    "r''m x",
    "r\"\"m x",
    "'rm' x",
    "\"rm\" x",
    "'r'm x",
    "\"r\"'m' x",
    "r\\m x",
    "\\rm x",
    "r\\\nm x",
    "r$@m x",
    "r${x}m x",
    "$'rm' x",
    "$'\\x72m' x",
    "$(echo rm) x",
    "`echo rm` x",
    "$(printf r)m x",
    "ls $(rm x)",
    "ls `rm x`",
    "ls \"$(rm x)\"",
    "ls \"`rm x`\"",
    "ls <(rm x)",
    "ls >(rm x)",
    "ls > $(rm x)",
    "A=rm; $A x",
    "A=rm B=x; \"$A\" $B",
    "${SHELL} -c 'rm x'",
    "/bin/r? x",
    "/bin/[r]m x",
    "/*/rm x",
    "r{m,} x",
    "{rm,x}",
    "rm$IFS-x",
    "rm${IFS}x",
    "rm<x",
    "rm>x",
    "<x rm",
    "2>x rm x",
    "ls 2>&1; rm x",
    "ls |& rm x",
    "[ -f x ] && rm x",
    // Under another name.
    "ln -s /bin/rm k; ./k x",
    "ln -s /bin/rm kubectl && ./kubectl get x",
    "cp /bin/rm k",
    "cp /usr/bin/rm /tmp/kubectl; /tmp/kubectl get x",
    "alias k=rm; k x",
    "alias kubectl=rm; kubectl get x",
    "hash -p /bin/rm kubectl; kubectl get x",
    "kubectl() { rm x; }; kubectl get x",
    "function kubectl { rm x; }; kubectl get x",
    // Characters that look like others, or like nothing.
    "ｒｍ x",
    "r\u{200b}m x",
    "r\u{ad}m x",
    "\u{feff}rm x",
    "rm\u{a0}x",
    "rm\u{2003}x",
    "ⓡm x",
    "рm x",
    "ls\u{2028}rm x",
    "ls\u{37e}rm x",
    "rm\u{b}x",
    "rm\u{c}x",
    "rm\0 x",
    "r\u{8}m x",
    "\u{1b}[mrm x",
    "ls \u{ff1b} rm x",
];

/// The same without a shell around it: the program, then its arguments.
const ARGV: &[&[&str]] = &[
    &["rm", "x"],
    &["/bin/rm", "x"],
    &["env", "rm", "x"],
    &["busybox", "rm", "x"],
    &["sudo", "-u", "a", "rm", "x"],
    &["nice", "-n", "5", "/bin/rm", "x"],
    &["sh", "-c", "rm x"],
    &["sh", "-c", "ls; rm x"],
    &["sh", "-c", "ls\nrm x"],
    &["/bin/bash", "-lc", "r''m x"],
    &["bash", "-c", "r\\m x"],
    &["bash", "-c", "$(echo rm) x"],
    &["env", "sh", "-c", "ls && rm x"],
    &["sh", "-c", "$0 x", "rm"],
    &["sh", "-c", "ⓡm x"],
    &["env", "-S", "rm x"],
    &["env", "-Srm x"],
    &["ｒｍ", "x"],
    &["r\u{200b}m", "x"],
    &["python3", "-c", "import os"],
    &["eval", "rm x"],
    &["xargs", "rm"],
    &["rm x"],
    &["ssh", "host", "ls; rm x"],
];

fn verdict(rule: &Rule, command: &str, args: Option<&[String]>) -> Verdict {
    let subject = Subject { email: "dev@x.com", role: Role::Developer, groups: &[] };
    let asked = Asked { command, args, image: "local", reference: None, lock: None, queue: "default", secrets: &[], playbook: None };
    judge([rule], &subject, &asked)
}

fn rule(effect: Effect, commands: &[&str]) -> Rule {
    Rule { commands: commands.iter().map(|pattern| (*pattern).to_owned()).collect(), ..Rule::new("rule", effect) }
}

/// Every way, with a name for messages.
fn every_way(mut each: impl FnMut(&str, Option<&[String]>)) {
    for text in TEXTS {
        each(text, None);
    }
    for argv in ARGV {
        let args: Vec<String> = argv[1..].iter().map(|word| (*word).to_owned()).collect();
        each(argv[0], Some(&args));
    }
}

#[test]
fn security_10_no_way_around_an_allow_list_of_commands() {
    let rule = rule(Effect::Allow, &["kubectl get *", "ls", "ls *", "echo *", "base64 *", "true"]);
    assert!(verdict(&rule, "ls -l; kubectl get pods | echo 'rm x'", None).allowed, "what is on the list runs");
    every_way(|command, args| assert!(!verdict(&rule, command, args).allowed, "{command:?} {args:?}"));
}

#[test]
fn security_10_no_way_around_a_deny_of_a_command() {
    for patterns in [&["rm *"][..], &["rm"], &["/bin/rm *"]] {
        let rule = rule(Effect::Deny, patterns);
        for command in ["ls -l", "kubectl get pods", "echo 'a b' | base64 -d", "rmdir x", "bash build.sh"] {
            assert!(verdict(&rule, command, None).allowed, "{command:?}: what is not denied runs");
        }
        every_way(|command, args| assert!(!verdict(&rule, command, args).allowed, "{patterns:?}: {command:?} {args:?}"));
    }
}

#[test]
fn security_10_deny_wins_over_an_allow_of_everything() {
    let (everything, nothing) = (rule(Effect::Allow, &["*"]), rule(Effect::Deny, &["rm *"]));
    let subject = Subject { email: "dev@x.com", role: Role::Developer, groups: &[] };
    every_way(|command, args| {
        let asked = Asked { command, args, image: "local", reference: None, lock: None, queue: "default", secrets: &[], playbook: None };
        assert!(!judge([&everything, &nothing], &subject, &asked).allowed, "{command:?} {args:?}");
    });
}

#[test]
fn security_10_a_name_that_leads_elsewhere_is_on_no_allow_list() {
    let rule = rule(Effect::Allow, &["kubectl get *", "/usr/bin/kubectl get *"]);
    assert!(verdict(&rule, "/usr/bin/kubectl get x", None).allowed);
    for command in [
        "/tmp/kubectl get x",
        "./kubectl get x",
        "bin/kubectl get x",
        "/usr/bin/../../tmp/kubectl get x",
        "/usr/bin//kubectl get x",
        "PATH=/tmp kubectl get x",
    ] {
        assert!(!verdict(&rule, command, None).allowed, "{command:?}");
    }
}

#[test]
fn a_text_that_unfolds_without_end_is_denied_not_followed() {
    let rule = rule(Effect::Deny, &["rm *"]);
    let deep = "eval ".repeat(1_000) + "ls";
    assert!(!verdict(&rule, &deep, None).allowed);
    let long = vec!["x".repeat(1_000); 100];
    let told = verdict(&rule, "ls", Some(&long));
    assert!(told.decisions[0].why.contains("it holds too much"), "{told:?}");
}
