//! What rules mean: to whom they apply, what wins, what is refused.

use proptest::prelude::*;

use super::*;

const ASKED: Asked<'static> = Asked {
    command: "kubectl get pods",
    args: None,
    image: "local",
    reference: None,
    lock: None,
    queue: "default",
    secrets: &[],
    playbook: None,
};

fn list(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

fn deny() -> Rule {
    Rule::new("deny", Effect::Deny)
}

fn allow() -> Rule {
    Rule::new("allow", Effect::Allow)
}

fn developer<'a>() -> Subject<'a> {
    Subject { email: "dev@x.com", role: Role::Developer, groups: &[] }
}

fn allowed(rules: &[Rule], asked: Asked<'_>) -> bool {
    for rule in rules {
        rule.check().expect("a rule that can be kept");
    }
    judge(rules, &developer(), &asked).allowed
}

fn runs(rules: &[Rule], command: &str) -> bool {
    allowed(rules, Asked { command, ..ASKED })
}

fn secrets(names: &[&str]) -> Vec<Name> {
    names.iter().map(|name| Name::new(*name).expect("a name")).collect()
}

#[test]
fn a_rule_applies_to_whom_it_lists() {
    let groups = list(&["web", "ops"]);
    let dev = Subject { groups: &groups, ..developer() };
    let admin = Subject { role: Role::Admin, email: "root@x.com", groups: &groups };
    let cases = [
        (deny(), true, false),
        (Rule { users: list(&["Dev@x.com"]), ..deny() }, true, false),
        (Rule { users: list(&["other@x.com"]), ..deny() }, false, false),
        (Rule { groups: list(&["ops"]), ..deny() }, true, false),
        (Rule { groups: list(&["op"]), ..deny() }, false, false),
        (Rule { roles: vec![Role::Developer], ..deny() }, true, false),
        (Rule { roles: vec![Role::Operator, Role::Admin], ..deny() }, false, false),
        (Rule { users: list(&["other@x.com"]), groups: list(&["web"]), ..deny() }, true, false),
        (Rule { users: list(&["root@x.com"]), ..deny() }, false, true),
    ];
    for (rule, to_dev, to_admin) in cases {
        assert_eq!(rule.applies_to(&dev), to_dev, "{rule:?}");
        assert_eq!(rule.applies_to(&admin), to_admin, "{rule:?}");
    }
}

#[test]
fn without_a_rule_nothing_is_narrowed() {
    let verdict = judge(&[], &developer(), &ASKED);
    assert!(verdict.allowed);
    assert_eq!(verdict.decisions, [Decision { rule: None, effect: Effect::Allow, why: "no rule denies it".into() }]);
}

#[test]
fn a_deny_needs_every_dimension_that_it_lists() {
    let rule = Rule { commands: list(&["kubectl delete *", "helm *"]), queues: list(&["prod*"]), ..deny() };
    let asked = |command, queue| Asked { command, queue, ..ASKED };
    assert!(!allowed(std::slice::from_ref(&rule), asked("helm upgrade x", "prod-1")));
    assert!(allowed(std::slice::from_ref(&rule), asked("helm upgrade x", "dev")));
    assert!(allowed(std::slice::from_ref(&rule), asked("kubectl get x", "prod-1")));
    assert!(!allowed(std::slice::from_ref(&rule), asked("$x", "prod-1")));
    assert!(allowed(&[rule], asked("$x", "dev")), "a command that cannot be judged is denied only where the rule looks");
}

#[test]
fn a_deny_that_lists_nothing_denies_everything() {
    let rules = [Rule { users: list(&["dev@x.com"]), reason: Some("on leave".into()), ..deny() }];
    assert!(!allowed(&rules, ASKED));
    assert!(!allowed(&rules, Asked { playbook: Some("deploy"), ..ASKED }));
    let why = &judge(&rules, &developer(), &ASKED).decisions[0].why;
    assert_eq!(why, "it denies everything: on leave");
}

#[test]
fn each_dimension_is_denied_by_its_value() {
    let given = secrets(&["db", "prod/key"]);
    let asked = Asked { image: "tools:2", lock: Some("infra"), queue: "slow", secrets: &given, ..ASKED };
    let hits = [
        Rule { images: list(&["tools:*"]), ..deny() },
        Rule { locks: list(&["infra"]), ..deny() },
        Rule { queues: list(&["s*w"]), ..deny() },
        Rule { secrets: list(&["prod/*"]), ..deny() },
    ];
    for rule in hits {
        assert!(!allowed(std::slice::from_ref(&rule), asked), "{rule:?}");
        assert!(allowed(&[rule], Asked { command: "x", ..ASKED }));
    }
}

#[test]
fn an_allow_list_is_the_union_of_all_that_apply() {
    let mut rules = vec![Rule { images: list(&["a"]), ..allow() }, Rule { images: list(&["b*"]), ..allow() }];
    let image = |rules: &[Rule], image| allowed(rules, Asked { image, ..ASKED });
    assert!(image(&rules, "a") && image(&rules, "b2") && !image(&rules, "local"));
    rules.push(Rule { images: list(&["local"]), users: list(&["other@x.com"]), ..allow() });
    assert!(!image(&rules, "local"), "what others may is of no account");
}

#[test]
fn an_image_is_judged_by_its_whole_reference_and_allowed_by_nothing_less_than_that_or_its_id() {
    let ours = Asked { image: "tool:v1-0011aabbccdd", reference: Some("ghcr.io/team/tool:v1"), ..ASKED };
    let theirs = Asked { image: "tool:v1-99887766aabb", reference: Some("evil.example/team/tool:v1"), ..ASKED };
    let both = |rule: Rule| (allowed(std::slice::from_ref(&rule), ours), allowed(&[rule], theirs));
    for pattern in ["ghcr.io/team/*", "ghcr.io/team/tool:v1", "tool:v1-0011aabbccdd"] {
        assert_eq!(both(Rule { images: list(&[pattern]), ..allow() }), (true, false), "{pattern}");
    }
    for pattern in ["tool*", "tool:v1-*", "tool:v1-0011aabbccd?", "team/tool:v1", "local"] {
        assert_eq!(both(Rule { images: list(&[pattern]), ..allow() }), (false, false), "{pattern}");
    }
    for (pattern, expected) in
        [("evil.example/*", (true, false)), ("*/tool:*", (false, false)), ("tool:*", (false, false)), ("local", (true, true))]
    {
        assert_eq!(both(Rule { images: list(&[pattern]), ..deny() }), expected, "{pattern}");
    }
    assert!(allowed(&[Rule { images: list(&["local"]), ..allow() }], ASKED));
    assert_eq!(both(Rule { images: list(&["*"]), ..allow() }), (true, true));
}

#[test]
fn an_allow_list_holds_for_what_is_asked_of_its_dimension() {
    let (db, both) = (secrets(&["db"]), secrets(&["db", "key"]));
    let only_db = [Rule { secrets: list(&["db"]), ..allow() }];
    assert!(allowed(&only_db, ASKED));
    assert!(allowed(&only_db, Asked { secrets: &db, ..ASKED }));
    assert!(!allowed(&only_db, Asked { secrets: &both, ..ASKED }), "every secret must be on it");
    let locks = [Rule { locks: list(&["dev-*"]), ..allow() }];
    assert!(allowed(&locks, ASKED), "no lock is asked for");
    assert!(allowed(&locks, Asked { lock: Some("dev-1"), ..ASKED }));
    assert!(!allowed(&locks, Asked { lock: Some("prod"), ..ASKED }));
    assert!(!allowed(&[Rule { queues: list(&["dev"]), ..allow() }], ASKED));
    assert!(!allowed(&[Rule { images: list(&["tools"]), ..allow() }], ASKED));
}

#[test]
fn allow_patterns_are_matched_on_words() {
    let rules = [Rule { commands: list(&["kubectl get *", "kubectl version", "/opt/bin/report *", "echo a?b"]), ..allow() }];
    for command in [
        "kubectl get pods",
        "kubectl  get\t'pods' -A",
        "kubectl version",
        "kubectl get a; kubectl version && kubectl get b | kubectl get c",
        "/opt/bin/report x",
        "echo 'a b'",
    ] {
        assert!(runs(&rules, command), "{command:?}");
    }
    for command in [
        "kubectl",
        "kubectl get",
        "kubectl delete x",
        "kubectl version x",
        "report x",
        "/opt/bin/../bin/report x",
        "kubectl 'get x'",
        "'kubectl get' x",
        "X=y kubectl get z",
        "kubectl get $X",
    ] {
        assert!(!runs(&rules, command), "{command:?}");
    }
}

#[test]
fn a_wildcard_lets_in_no_path_and_no_assignment() {
    let rules = [Rule { commands: list(&["*ctl get *", "/opt/* x", "* -v"]), ..allow() }];
    assert!(runs(&rules, "kubectl get x"));
    for command in ["/tmp/kubectl get x", "./xctl get x", "/opt/tool x", "LD_PRELOAD=x kubectl get y", "PATH=. ls -v"] {
        assert!(!runs(&rules, command), "{command:?}");
    }
}

#[test]
fn the_star_alone_allows_what_cannot_be_judged() {
    let rules = [Rule { commands: list(&["ls", "*"]), ..allow() }];
    for command in ["ls", "$(x)", "a\nb", "", "ü"] {
        assert!(runs(&rules, command), "{command:?}");
    }
    assert!(!runs(&[Rule { commands: list(&["**"]), ..allow() }], "$x"));
}

#[test]
fn a_shell_must_be_allowed_and_its_text_too() {
    let shell = Rule { commands: list(&["sh -c *", "bash *"]), ..allow() };
    let kubectl = Rule { commands: list(&["kubectl get *"]), ..allow() };
    let both = [shell.clone(), kubectl.clone()];
    for command in ["sh -c 'kubectl get x'", "bash -lc \"kubectl get x; kubectl get y\"", "bash deploy.sh"] {
        assert!(runs(&both, command), "{command:?}");
    }
    for command in ["sh -c 'rm x'", "bash -lc 'kubectl get $x'", "bash -c", "sh -c 'bash -c \"rm x\"'"] {
        assert!(!runs(&both, command), "{command:?}");
    }
    assert!(!runs(&[kubectl], "sh -c 'kubectl get x'"));
    let args = list(&["-c", "kubectl get x"]);
    assert!(allowed(&both, Asked { command: "sh", args: Some(&args), ..ASKED }));
    let args = list(&["-c", "kubectl get x; rm y"]);
    assert!(!allowed(&both, Asked { command: "sh", args: Some(&args), ..ASKED }));
}

#[test]
fn arguments_without_a_shell_are_taken_as_they_are() {
    let rules = [Rule { commands: list(&["grep *"]), ..allow() }];
    let args = list(&["a$b; rm *", "grüße\n"]);
    assert!(allowed(&rules, Asked { command: "grep", args: Some(&args), ..ASKED }));
    assert!(!allowed(&rules, Asked { command: "grep x; rm", args: Some(&[]), ..ASKED }));
    assert!(!allowed(&rules, Asked { command: "grep x", args: Some(&[]), ..ASKED }), "a program whose name has a blank is another");
}

#[test]
fn a_deny_pattern_reaches_what_it_means() {
    let rules = [Rule { commands: list(&["kubectl delete", "/sbin/reboot", "helm * prod"]), ..deny() }];
    for command in [
        "kubectl delete",
        "kubectl delete pods",
        "xargs kubectl delete",
        "reboot",
        "/usr/sbin/reboot -f",
        "helm upgrade x prod",
        "helm upgrade x prod --wait",
    ] {
        assert!(!runs(&rules, command), "{command:?}");
    }
    for command in [
        "kubectl get pods",
        "kubectl deletes",
        "rebooter",
        "helm upgrade x dev",
        "bash deploy.sh",
        "python3 -m pytest",
        "which bash",
        "grep 'x$' file",
        "echo 'a (b)'",
    ] {
        assert!(runs(&rules, command), "{command:?}");
    }
}

#[test]
fn a_playbook_is_judged_by_its_name_alone() {
    let playbook = |name| Asked { command: "rm -rf $x", image: "odd", queue: "odd", lock: Some("odd"), playbook: Some(name), ..ASKED };
    let narrow = Rule { commands: list(&["ls"]), images: list(&["a"]), queues: list(&["b"]), locks: list(&["c"]), ..allow() };
    let stops = Rule { commands: list(&["rm *"]), queues: list(&["odd"]), ..deny() };
    assert!(allowed(&[narrow.clone(), stops.clone()], playbook("deploy")));
    let only = Rule { playbooks: list(&["deploy", "db/*"]), ..allow() };
    let rules = [narrow, stops, only];
    assert!(allowed(&rules, playbook("deploy")) && allowed(&rules, playbook("db/backup")));
    assert!(!allowed(&rules, playbook("destroy")));
    assert!(!allowed(&[Rule { playbooks: list(&["de*"]), ..deny() }], playbook("deploy")));
    assert!(allowed(&[Rule { playbooks: list(&["*"]), ..deny() }], ASKED), "a plain run is no playbook");
}

#[test]
fn whoever_is_limited_to_playbooks_runs_nothing_else() {
    let rules = [Rule { playbooks: list(&["*"]), commands: list(&["*"]), ..allow() }];
    let verdict = judge(&rules, &developer(), &ASKED);
    assert!(!verdict.allowed);
    let [decision] = verdict.decisions.as_slice() else { panic!("{:?}", verdict.decisions) };
    assert_eq!(decision.rule.as_deref(), Some("allow"));
    assert_eq!(decision.why, "only playbooks may be run, and this is a plain command");
}

#[test]
fn the_verdict_names_every_rule_that_stands_against_it() {
    let rules = [
        Rule { images: list(&["local"]), ..Rule::new("images", Effect::Allow) },
        Rule { queues: list(&["dev"]), reason: Some("ask the platform team".into()), ..Rule::new("queues", Effect::Allow) },
        Rule { commands: list(&["rm *"]), ..Rule::new("no-rm", Effect::Deny) },
        Rule { secrets: list(&["a"]), ..Rule::new("s1", Effect::Allow) },
        Rule { secrets: list(&["b"]), ..Rule::new("s2", Effect::Allow) },
    ];
    let given = secrets(&["c"]);
    let verdict = judge(&rules, &developer(), &Asked { command: "rm hunter2", secrets: &given, ..ASKED });
    let told: Vec<_> = verdict.decisions.iter().map(|decision| (decision.rule.as_deref(), decision.why.as_str())).collect();
    assert_eq!(
        told,
        [
            (Some("no-rm"), "the command matches `rm *`"),
            (Some("queues"), "the queue `default` is not among those allowed: ask the platform team"),
            (None, "the secret `c` is not among those allowed; the rules `s1`, `s2` allow together what is allowed"),
        ]
    );
    assert!(verdict.decisions.iter().all(|decision| decision.effect == Effect::Deny && !decision.why.contains("hunter2")));
    let verdict = judge(&rules[..1], &developer(), &ASKED);
    assert_eq!(
        verdict.decisions,
        [Decision { rule: Some("images".into()), effect: Effect::Allow, why: "the image `local` matches `local`".into() }]
    );
}

#[test]
fn what_cannot_be_kept_is_refused_by_field() {
    let many = vec!["a".to_owned(); MOST_ENTRIES + 1];
    let cases = [
        ("name", Rule { name: "a b".into(), images: list(&["a"]), ..deny() }),
        ("users", Rule { users: list(&["nobody"]), ..deny() }),
        ("users", Rule { users: many.clone(), ..deny() }),
        ("groups", Rule { groups: list(&["ü"]), ..deny() }),
        ("roles", Rule { roles: vec![Role::Admin], ..deny() }),
        ("commands", Rule { commands: list(&["ls", ""]), ..deny() }),
        ("images", Rule { images: list(&[&"a".repeat(513)]), ..deny() }),
        ("locks", Rule { locks: list(&[" a"]), ..deny() }),
        ("queues", Rule { queues: many, ..deny() }),
        ("secrets", Rule { secrets: list(&["a\nb"]), ..deny() }),
        ("reason", Rule { images: list(&["a"]), reason: Some(" ".into()), ..deny() }),
        ("effect", deny()),
        ("effect", Rule { users: list(&["a@x.com"]), ..allow() }),
        ("playbooks", Rule { playbooks: list(&["a"]), queues: list(&["b"]), ..deny() }),
    ];
    for (field, rule) in cases {
        assert_eq!(rule.check().map_err(|error| error.field), Err(field), "{rule:?}");
    }
    assert_eq!(Rule { images: list(&["a"]), ..allow() }.check(), Ok(()));
    assert_eq!(Rule { users: list(&["a@x.com"]), ..deny() }.check(), Ok(()));
}

#[test]
fn a_rule_is_written_without_what_it_does_not_list() {
    let text = r#"{"name":"no-rm","effect":"deny","roles":["developer"],"commands":["rm *"]}"#;
    let rule: Rule = serde_json::from_str(text).expect("a rule");
    assert_eq!(rule, Rule { roles: vec![Role::Developer], commands: list(&["rm *"]), ..Rule::new("no-rm", Effect::Deny) });
    assert_eq!(serde_json::to_string(&rule).expect("text"), text);
    assert!(serde_json::from_str::<Rule>(r#"{"name":"a","effect":"deny","command":["rm *"]}"#).is_err());
    assert!(serde_json::from_str::<Rule>(r#"{"name":"a","effect":"forbid"}"#).is_err());
}

const PATTERNS: [&str; 8] = ["*", "a*", "b", "a", "?", "ls *", "ls", "*b"];
const COMMANDS: [&str; 8] = ["a", "b", "ls", "ls a", "ls a; b", "sh -c 'ls a'", "ls $a", "/bin/ls a"];

fn any_patterns() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(proptest::sample::select(&PATTERNS[..]).prop_map(str::to_owned), 1..3)]
}

fn any_rule(effect: Effect) -> impl Strategy<Value = Rule> {
    let lists = (any_patterns(), any_patterns(), any_patterns(), any_patterns(), any_patterns(), any_patterns());
    (lists, any::<bool>()).prop_map(move |((commands, images, locks, queues, secrets, playbooks), others)| {
        let users = if others { list(&["other@x.com"]) } else { Vec::new() };
        Rule { users, commands, images, locks, queues, secrets, playbooks, ..Rule::new("any", effect) }
    })
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(prop_oneof![3 => any_rule(Effect::Allow), 1 => any_rule(Effect::Deny)], 0..4)
}

#[derive(Debug, Clone)]
struct Request {
    command: &'static str,
    image: &'static str,
    lock: Option<&'static str>,
    secrets: Vec<Name>,
    playbook: Option<&'static str>,
}

impl Request {
    fn asked(&self) -> Asked<'_> {
        Asked { command: self.command, image: self.image, lock: self.lock, secrets: &self.secrets, playbook: self.playbook, ..ASKED }
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    let value = || proptest::sample::select(&["a", "b", "ab", "c"][..]);
    let given = proptest::collection::vec(value(), 0..3).prop_map(|names| secrets(&names));
    let playbook = prop_oneof![3 => Just(None), 1 => value().prop_map(Some)];
    (proptest::sample::select(&COMMANDS[..]), value(), proptest::option::of(value()), given, playbook)
        .prop_map(|(command, image, lock, secrets, playbook)| Request { command, image, lock, secrets, playbook })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn deny_wins_whatever_is_allowed(deny in any_rule(Effect::Deny), more in any_rules(), request in any_request(), at in 0..4usize) {
        let alone = judge(std::slice::from_ref(&deny), &developer(), &request.asked()).allowed;
        let mut rules = more;
        rules.insert(at.min(rules.len()), deny);
        prop_assert!(alone || !judge(&rules, &developer(), &request.asked()).allowed);
    }

    #[test]
    fn a_list_of_a_new_dimension_never_widens(rules in any_rules(), mut new in any_rule(Effect::Allow), request in any_request()) {
        let known = |dimension| rules.iter().any(|rule| rule.effect == Effect::Allow && rule.applies_to(&developer()) && rule.lists(dimension));
        for (dimension, patterns) in Dimension::ALL.into_iter().zip([&mut new.commands, &mut new.images, &mut new.locks, &mut new.queues, &mut new.secrets, &mut new.playbooks]) {
            if known(dimension) {
                patterns.clear();
            }
        }
        let before = judge(&rules, &developer(), &request.asked()).allowed;
        let after = judge(rules.iter().chain([&new]), &developer(), &request.asked()).allowed;
        prop_assert!(before || !after);
    }

    #[test]
    fn the_order_of_rules_is_of_no_account(rules in any_rules(), request in any_request()) {
        let verdict = judge(&rules, &developer(), &request.asked());
        prop_assert_eq!(verdict.allowed, judge(rules.iter().rev(), &developer(), &request.asked()).allowed);
        prop_assert!(!verdict.decisions.is_empty());
        prop_assert_eq!(verdict.allowed, verdict.decisions.iter().all(|decision| decision.effect == Effect::Allow));
    }
}
