//! Parameters: what they take, and that no value becomes an option, a further argument or a part of a shell text.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn playbook(parameters: Value) -> PlaybookBody {
    let args = json!(["deploy", "--", "{{region}}", "x={{region}}!"]);
    serde_json::from_value(json!({"command": "tool", "args": args, "parameters": parameters})).expect("a playbook")
}

fn given(values: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(values).expect("a map")
}

#[test]
fn a_value_is_one_whole_argument_and_a_variable_and_never_part_of_a_text() {
    let body = playbook(json!({"region": {"type": "string", "allow": ["control"]}, "count": {"type": "integer", "default": 2}}));
    body.check().expect("it makes sense");
    let hostile = "eu; rm -rf / $(id) `id` \n\"'";
    let bound = body.bind(&given(json!({"region": hostile}))).expect("any text");
    assert_eq!(bound.args, Some(vec!["deploy".into(), "--".into(), hostile.into(), format!("x={hostile}!")]));
    assert_eq!(bound.env["RUNVOY_PARAM_REGION"], hostile);
    assert_eq!(bound.env["RUNVOY_PARAM_COUNT"], "2");
}

#[test]
fn values_are_what_their_parameter_says() {
    let body = playbook(json!({
        "region": {"type": "choice", "choices": ["eu", "us"], "default": "eu"},
        "n": {"type": "integer", "min": 1, "max": 5, "default": 1},
        "sure": {"type": "boolean", "default": false},
        "tag": {"type": "string", "pattern": "v*", "max_length": 4, "default": "v1"},
    }));
    body.check().expect("it makes sense");
    for good in [json!({}), json!({"region": "us", "n": "5", "sure": "true", "tag": "v123"}), json!({"n": 3, "sure": true})] {
        body.bind(&given(good)).expect("good values");
    }
    let refused = [
        (json!({"region": "asia"}), "parameters.region"),
        (json!({"n": 6}), "parameters.n"),
        (json!({"n": "2x"}), "parameters.n"),
        (json!({"n": 1.5}), "parameters.n"),
        (json!({"sure": "yes"}), "parameters.sure"),
        (json!({"tag": "1"}), "parameters.tag"),
        (json!({"tag": "v1234"}), "parameters.tag"),
        (json!({"tag": 1}), "parameters.tag"),
        (json!({"other": 1}), "parameters"),
    ];
    for (values, field) in refused {
        assert_eq!(body.bind(&given(values.clone())).expect_err("a bad value").field, field, "{values}");
    }
    let needed = playbook(json!({"region": {"type": "string"}}));
    assert_eq!(needed.bind(&given(json!({}))).expect_err("it must be given").field, "parameters.region");
}

#[test]
fn a_playbook_that_makes_no_sense_is_refused() {
    for parameters in [
        json!({}),
        json!({"Region": {"type": "string"}}),
        json!({"region": {"type": "choice"}}),
        json!({"region": {"type": "string", "min": 1}}),
        json!({"region": {"type": "integer", "min": 2, "max": 1}}),
        json!({"region": {"type": "integer", "default": "x"}}),
        json!({"region": {"type": "boolean", "choices": ["a"]}}),
        json!({"region": {"type": "string", "regex": "("}}),
        json!({"region": {"type": "string", "regex": "a)|(b"}}),
        json!({"region": {"type": "string", "regex": "(?:\\w{500}){500}"}}),
        json!({"region": {"type": "integer", "regex": "1"}}),
        json!({"region": {"type": "string", "default": "-v"}}),
    ] {
        assert!(playbook(parameters.clone()).check().is_err(), "{parameters}");
    }
}

#[test]
fn security_10_a_parameter_is_no_option_unless_allowed() {
    let strict = playbook(json!({"region": {"type": "string", "pattern": "*"}}));
    for hostile in ["-v", "--checkpoint-action=exec=sh", "a\nb", "a\tb", "\u{1b}[2J", "\u{7f}", "\u{85}"] {
        assert_eq!(strict.bind(&given(json!({"region": hostile}))).expect_err(hostile).field, "parameters.region");
    }
    let open = playbook(json!({"region": {"type": "string", "allow": ["leading_dash", "control"]}}));
    assert!(open.bind(&given(json!({"region": "-v\n"}))).is_ok());
    let number = |declared: Value| playbook(json!({"region": declared})).bind(&given(json!({"region": -9}))).is_ok();
    assert!(!number(json!({"type": "integer"})) && !number(json!({"type": "integer", "max": 5})));
    assert!(number(json!({"type": "integer", "min": -9})) && number(json!({"type": "integer", "allow": ["leading_dash"]})));
}

#[test]
fn a_regular_expression_must_match_the_whole_value() {
    for regex in ["web-[a-z]+", "^web-[a-z]+$", "x|web-[a-z]+"] {
        let body = playbook(json!({"region": {"type": "string", "regex": regex, "allow": ["control"]}}));
        body.check().expect("a regular expression");
        assert!(body.bind(&given(json!({"region": "web-shop"}))).is_ok(), "{regex}");
        for bad in ["web-", "web-shop ", "a web-shop", "web-shop\n", "web-shop\nx", "xy"] {
            assert!(body.bind(&given(json!({"region": bad}))).is_err(), "{regex}: {bad:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn security_10_values_never_become_options_or_words(value in value()) {
        let args = json!(["--file={{a}}", "{{a}}", "{{a}}{{a}}", "--", "x{{a}}y"]);
        let body: PlaybookBody =
            serde_json::from_value(json!({"command": "tool", "args": args, "parameters": {"a": {"type": "string"}}})).expect("a playbook");
        if let Ok(bound) = body.bind(&given(json!({"a": value}))) {
            let expected = [format!("--file={value}"), value.clone(), format!("{value}{value}"), "--".into(), format!("x{value}y")];
            let words = bound.args.expect("arguments");
            prop_assert_eq!(&words[..], &expected[..]);
            prop_assert!([1, 2, 4].iter().all(|at| !words[*at].starts_with('-')));
            prop_assert!(!value.chars().any(char::is_control));
        }
    }
}

#[test]
fn only_a_declared_name_in_braces_stands_for_a_value() {
    let body = |arg: &str| -> PlaybookBody {
        serde_json::from_value(json!({"command": "tool", "args": [arg], "parameters": {"a": {"type": "string"}}})).expect("a playbook")
    };
    for (arg, filled) in [
        ("--format={{.Names}}", "--format={{.Names}}"),
        ("{{json .}} {{a}}", "{{json .}} 1"),
        ("{{{a}}}", "{1}"),
        ("{{a", "{{a"),
        ("{{}}{{a}}", "{{}}1"),
        ("{{ end }}", "{{ end }}"),
        ("{{ a }}", "1"),
        ("--x={{ a}}{{a }}", "--x=11"),
        ("\\{{ a }}", "{{ a }}"),
        ("\\{{a}} {{a}}", "{{a}} 1"),
        ("\\{{b}}", "{{b}}"),
        ("\\{{.b}}", "\\{{.b}}"),
        ("{{a}}{{a}}", "11"),
        ("{{é}}", "{{é}}"),
    ] {
        let body = body(arg);
        body.check().unwrap_or_else(|error| panic!("{arg}: {error}"));
        assert_eq!(body.bind(&given(json!({"a": "1"}))).expect("a value").args, Some(vec![filled.to_owned()]), "{arg}");
    }
    for arg in ["{{b}}", "x{{unknown_identifier}}", "{{A}}"] {
        assert_eq!(body(arg).check().expect_err(arg).field, "args");
        // One that was pushed before goes on as it was.
        assert_eq!(body(arg).bind(&given(json!({"a": "1"}))).expect("a value").args, Some(vec![arg.to_owned()]), "{arg}");
    }
}

fn shell(command: &str) -> PlaybookBody {
    serde_json::from_value(json!({"command": command, "parameters": {"a": {"type": "string"}}})).expect("a playbook")
}

#[test]
fn security_10_a_parameter_without_double_quotes_is_refused() {
    for command in [
        "tar -cf out.tar $RUNVOY_PARAM_A",
        "tar -cf out.tar ${RUNVOY_PARAM_A}",
        "tar -cf out.tar -- dir/$RUNVOY_PARAM_A",
        "echo \"a\"$RUNVOY_PARAM_A\"b\"",
        "echo \"$(ls $RUNVOY_PARAM_A)\"",
        "echo ${x:-$RUNVOY_PARAM_A}",
        "echo ok # don't\ntar $RUNVOY_PARAM_A",
        "sh -c 'tar $RUNVOY_PARAM_A'",
        "sh -c \"tar $RUNVOY_PARAM_A\"",
        "bash -lc \"tar ${RUNVOY_PARAM_A}\" x",
        "eval \"tar $RUNVOY_PARAM_A\"",
        "tar `echo \"$RUNVOY_PARAM_A\"`",
        "sh <<E\ntar \"$RUNVOY_PARAM_A\"\nE",
        "echo \"$(case x in a) tar $RUNVOY_PARAM_A;; esac)\"",
        "echo \"$RUNVOY_PARAM_A",
    ] {
        let refused = shell(command).check().expect_err(command);
        assert_eq!(refused.field, "command", "{command}");
    }
    for command in [
        "tar -cf out.tar -- \"$RUNVOY_PARAM_A\"",
        "tool --path=\"${RUNVOY_PARAM_A}\" --name=\"x $RUNVOY_PARAM_A\"",
        "echo \"${RUNVOY_PARAM_A:-none}\" '$HOME' $HOME # it's",
        "x=$(tool \"$RUNVOY_PARAM_A\"); echo \"$x\" $(ls)",
        "sh -c 'tool \"$1\"' sh \"$RUNVOY_PARAM_A\"",
        "sh -c 'tool \"$RUNVOY_PARAM_A\"'",
        "case \"$RUNVOY_PARAM_A\" in a) ls;; esac",
        "tool \"${RUNVOY_PARAM_A:+--x=$RUNVOY_PARAM_A}\"",
        "tool \"${RUNVOY_PARAM_A:-$RUNVOY_PARAM_B}\"",
        "tr -d '\"' < \"$RUNVOY_PARAM_A\" | sed 's/`//g'",
        "x=$(grep --ignore-case -- \"$RUNVOY_PARAM_A\" f) # lowercase",
        "cat <<E\nno parameter\nE",
    ] {
        shell(command).check().unwrap_or_else(|error| panic!("{command}: {error}"));
    }
    let args = |args: Value| -> PlaybookBody {
        serde_json::from_value(json!({"command": "sh", "args": args, "parameters": {"a": {"type": "string"}}})).expect("a playbook")
    };
    for refused in [json!(["-c", "tar {{a}}"]), json!(["-c", "tar {{ a }}"]), json!(["-ec", "tar $RUNVOY_PARAM_A"])] {
        assert_eq!(args(refused).check().expect_err("a shell's text").field, "args");
    }
    // Nor is it run where it was pushed before.
    for stored in [json!(["-c", "tar {{a}}"]), json!(["-c", "tar {{ a }}"])] {
        assert_eq!(args(stored).bind(&given(json!({"a": "; id"}))).expect_err("a shell's text").field, "args");
    }
    args(json!(["-c", "tar \"$1\"", "sh", "{{a}}"])).check().expect("one argument");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is not refused at push, a real shell makes one word of a value in it.
    #[test]
    fn security_10_a_real_shell_splits_no_value_of_a_text_that_was_taken(text in shell_text()) {
        let body = shell(&text);
        if body.check().is_ok() {
            let words = words_of_sh(&text, "one --two");
            prop_assert!(words.iter().all(|word| !word.contains("--two") || word.contains("one --two")), "{text:?}: {words:?}");
        }
    }
}

#[test]
fn security_10_a_real_shell_makes_an_option_of_what_is_refused() {
    for text in ["say $RUNVOY_PARAM_A", "say x${RUNVOY_PARAM_A}y", "sh -c 'say() { printf \"%s\\1\" \"$@\" >&3; }; say $RUNVOY_PARAM_A'"] {
        assert!(words_of_sh(text, "x --checkpoint-action=exec=sh").iter().any(|word| word.starts_with("--checkpoint-action")), "{text}");
        assert_eq!(shell(text).check().expect_err(text).field, "command");
    }
}

/// The words that `say` is called with in a text, with this value of the parameter.
fn words_of_sh(text: &str, value: &str) -> Vec<String> {
    let script = format!("exec 3>&1 1>/dev/null 2>&1\nsay() {{ printf '%s\\001' \"$@\" >&3; }}\n{text}");
    let output =
        std::process::Command::new("/bin/sh").args(["-c", &script]).env_clear().env("RUNVOY_PARAM_A", value).output().expect("sh runs");
    String::from_utf8_lossy(&output.stdout).split_terminator('\u{1}').map(str::to_owned).collect()
}

/// Shell texts around a parameter, with and without quotes.
fn shell_text() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => Just("\"$RUNVOY_PARAM_A\""),
        3 => Just("$RUNVOY_PARAM_A"),
        2 => Just("${RUNVOY_PARAM_A}"),
        4 => Just("\""),
        2 => Just("'"),
        3 => Just(" "),
        2 => Just("say "),
        1 => Just("; say "),
        1 => Just("\n"),
        1 => Just("\\"),
        1 => Just("$(say "),
        1 => Just("${x:-"),
        1 => Just("}"),
        1 => Just(")"),
        1 => Just("("),
        1 => Just("#"),
        1 => Just("a"),
        1 => Just("`"),
        1 => Just("<<a"),
        1 => Just("case a in a) "),
        1 => Just("$"),
    ];
    proptest::collection::vec(token, 1..10).prop_map(|tokens| format!("say {}", tokens.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn security_10_a_real_shell_sees_a_value_as_one_word(value in value()) {
        let body: PlaybookBody =
            serde_json::from_value(json!({"command": "printf '%s\\n' \"$RUNVOY_PARAM_A\" end", "parameters": {"a": {"type": "string"}}}))
                .expect("a playbook");
        if let Ok(bound) = body.bind(&given(json!({"a": value}))) {
            let output = std::process::Command::new("/bin/sh").args(["-c", &body.command]).envs(&bound.env).output().expect("sh runs");
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{value}\nend\n"));
            prop_assert!(output.stderr.is_empty());
        }
    }
}

/// Values as an attacker writes them: what shells, option parsers and placeholders read, among anything else.
fn value() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("-"),
        Just("--"),
        Just(" "),
        Just("\n"),
        Just("'"),
        Just("\""),
        Just("$(id)"),
        Just("`id`"),
        Just(";"),
        Just("\\"),
        Just("{{a}}"),
        Just("*"),
        Just("exec=sh"),
        Just("$IFS"),
        Just("&&"),
        Just("é"),
        Just("a"),
        Just("%s"),
        Just("\u{1b}"),
    ];
    prop_oneof![
        proptest::collection::vec(token, 0..8).prop_map(|tokens| tokens.concat()),
        proptest::collection::vec(any::<char>().prop_filter("no NUL", |c| *c != '\0'), 0..20)
            .prop_map(|chars| chars.into_iter().collect::<String>()),
    ]
}
