//! What of a command is shown, and where an incident stands.

use super::*;

#[test]
fn security_13_what_looks_like_a_secret_is_in_no_message() {
    for (command, shown) in [
        ("make deploy", "make deploy"),
        ("sleep 300", "sleep 300"),
        ("make build && /usr/bin/python3 setup.py install", "make build && python3 setup.py install"),
        ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=… make"),
        ("DB_PASSWORD='a b' make", "…"),
        ("tool --token abc --verbose", "tool --token …"),
        ("tool --quiet -x --api-key=abc x", "tool --quiet -x --api-key …"),
        ("curl -H \"Authorization: Bearer abc.def\" https://x", "curl -H …"),
        ("curl -u ana:pw https://x", "curl -u …"),
        ("curl https://x/?key=abc&sig=def", "curl …"),
        ("mysql -phunter -h db", "mysql …"),
        ("mysql --password hunter", "mysql --password …"),
        ("git clone https://me:p@w@example.com/x", "git clone …"),
        ("notify https://hooks.slack.com/services/T0/B0/x", "notify …"),
        ("login hunter", "login …"),
        ("vault login hunter", "vault login …"),
        ("deploy ghp_abcdef0123", "deploy …"),
        ("deploy abcdefghijklmnopqrstuvwxyz", "deploy …"),
        ("echo 'correct horse'", "echo …"),
        (": '<!channel>'; sleep 300", "…"),
        ("make\n\tall\u{202e}c\u{1b}[31m", "make …"),
        ("", ""),
    ] {
        assert_eq!(shown_command(command, &[]), shown, "{command}");
    }
    assert_eq!(shown_command("psql", &["--password".into(), "x".into()]), "psql --password …");
    assert_eq!(shown_command(&"go ".repeat(200), &[]).chars().count(), MOST_COMMAND + 1);
}

#[test]
fn a_line_is_one_line_and_reads_from_left_to_right() {
    assert_eq!(one_line("a\r\n\u{2028}*Next:*\u{202e} b\u{200b}c\u{7}", 100), "a *Next:* b c");
    assert_eq!(one_line("ééé", 2), "éé…");
}

#[test]
fn a_phase_is_known_with_its_beginning() {
    let begun = Incident::begun(IncidentKind::Dead, "x", "gave up", UnixMs(1));
    let told = Incident { told_at: Some(UnixMs(2)), ..begun.clone() };
    let over = |told_at| Some(Over { at: UnixMs(3), why: String::new(), told_at });
    assert_eq!(begun.phase(), (Phase::Begun, UnixMs(1)));
    assert_eq!(told.phase(), (Phase::Told, UnixMs(2)));
    assert_eq!(Incident { over: over(None), ..told.clone() }.phase(), (Phase::Over, UnixMs(3)));
    assert_eq!(Incident { over: over(Some(UnixMs(4))), ..begun }.phase(), (Phase::Closed, UnixMs(4)));
}

#[test]
fn an_incident_is_to_be_told_until_somebody_was() {
    let mut incident = Incident::begun(IncidentKind::Dead, "x", "gave up", UnixMs(1));
    assert!(incident.is_to_be_told() && incident.is_open());
    incident.told_at = Some(UnixMs(2));
    assert!(!incident.is_to_be_told());
    incident.over = Some(Over { at: UnixMs(3), why: "redriven".into(), told_at: None });
    assert!(incident.is_to_be_told() && !incident.is_open());
    incident.over = Some(Over { at: UnixMs(3), why: "redriven".into(), told_at: Some(UnixMs(4)) });
    assert!(!incident.is_to_be_told());
    assert_eq!(incident.name(), "dead:x");
}
