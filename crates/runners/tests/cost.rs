//! temp
#[path = "process/stage.rs"]
#[expect(dead_code, reason = "x")]
mod stage;
use runvoy_ports::runner::*;
use stage::Stage;
use std::time::Instant;
fn ticks(pid: u32) -> (u64, u64) {
    let s = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let f: Vec<u64> = s.rsplit_once(')').unwrap().1.split_ascii_whitespace().skip(11).take(4).map(|x| x.parse().unwrap()).collect();
    ((f[0] + f[1]) * 10000, (f[2] + f[3]) * 10000)
}
#[tokio::test]
async fn cost() {
    let n: u64 = 2000;
    for round in 0..2 {
    let t = Instant::now();
    let a = ticks(std::process::id());
    for _ in 0..n {
        std::process::Command::new("/bin/sh").args(["-c", "true"]).env_clear().status().unwrap();
    }
    let b = ticks(std::process::id());
    println!("{round} bare wall {} cpu self {} children {}", t.elapsed().as_micros() as u64 / n, (b.0 - a.0) / n, (b.1 - a.1) / n);
    for (label, c) in [("v2", Containment::CgroupV2), ("v1", Containment::CgroupV1), ("pidns", Containment::PidNamespace), ("weak", Containment::Weak)] {
        let base = std::env::var("COST_ROOT").ok();
        let stage = Stage::with(|config| { config.containment = Some(c); if let Some(b) = &base { config.work_root = format!("{b}/{}", config.instance).into(); } }).await;
        let sp = stage.runner.spawner_pid();
        stage.run("true").await;
        let t = Instant::now();
        let a = (ticks(std::process::id()), ticks(sp));
        for _ in 0..n {
            let start = stage.shell("true");
            let e = start.execution;
            let st = stage.runner.start(start).await.unwrap();
            st.exit.await.unwrap();
            stage.runner.clean_up(e, 1).await;
        }
        let b = (ticks(std::process::id()), ticks(sp));
        let rss = std::fs::read_to_string(format!("/proc/{sp}/status")).unwrap().lines().find(|l| l.starts_with("VmRSS")).unwrap().to_owned();
        println!("{round} {label} wall {} worker {} spawner {} children {} {rss}", t.elapsed().as_micros() as u64 / n, (b.0.0 - a.0.0) / n, (b.1.0 - a.1.0) / n, (b.1.1 - a.1.1) / n);
    }
    }
}
