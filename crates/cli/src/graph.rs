//! A job's tasks as a tree for a terminal. A task stands below the one of its parents that is the furthest from the beginning, and names
//! the others; an only child stands below its parent without another step to the right, so that a long chain stays narrow. Pure.

use std::collections::HashMap;

use runvoy_wire::{Rfc3339, Status, Task, TaskStatus};

use crate::duration::Human;
use crate::reason;
use crate::sanitize::one_line;
use crate::table::cut;
use crate::terminal::{Tone, paint};

/// How the tree is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) now: Rfc3339,
    /// Longer lines are cut.
    pub(crate) width: Option<usize>,
    /// What does not fit is counted instead.
    pub(crate) height: Option<usize>,
    pub(crate) colour: bool,
}

/// The mark of a status, and what it feels like.
pub(crate) fn mark(status: TaskStatus) -> (&'static str, Tone) {
    match status {
        TaskStatus::Waiting => ("·", Tone::Dim),
        TaskStatus::Execution(Status::Pending) => ("◌", Tone::Dim),
        TaskStatus::Execution(Status::Starting | Status::Running) => ("●", Tone::Busy),
        TaskStatus::Execution(Status::Terminating) => ("●", Tone::Warning),
        TaskStatus::Execution(Status::Succeeded) => ("✓", Tone::Good),
        TaskStatus::Execution(Status::Failed) => ("✗", Tone::Bad),
        TaskStatus::Execution(Status::Stopped) => ("■", Tone::Warning),
    }
}

/// How long a task ran, or runs.
pub(crate) fn duration(task: &Task, now: Rfc3339) -> Option<String> {
    let until = if task.completed_at.is_some() { task.completed_at } else { Some(now) };
    task.started_at.zip(until).map(|(began, until)| Human::from_ms(until.ms_since(began)).to_string())
}

/// The tree, a line a task.
pub(crate) fn draw(tasks: &[Task], look: Look) -> String {
    let tree = Tree::of(tasks);
    let most = look.height.filter(|height| *height < tasks.len()).map(|height| height.saturating_sub(1));
    let mut out = String::new();
    let mut drawn = 0;
    // Each with what stands before its line and before those below it.
    let mut open: Vec<(usize, String, String)> = tree.roots.iter().rev().map(|root| (*root, String::new(), String::new())).collect();
    while let Some((task, before, below)) = open.pop() {
        if most.is_some_and(|most| drawn >= most) {
            out.push_str(&paint(&format!("… {} more", tasks.len() - drawn), Tone::Dim, look.colour));
            out.push('\n');
            break;
        }
        out.push_str(&line(&tasks[task], &before, tree.shown_above[task], look));
        drawn += 1;
        match tree.children[task].as_slice() {
            [] => {}
            [only] => open.push((*only, format!("{below}↓ "), below)),
            [first @ .., last] => {
                open.push((*last, format!("{below}└─ "), format!("{below}   ")));
                open.extend(first.iter().rev().map(|child| (*child, format!("{below}├─ "), format!("{below}│  "))));
            }
        }
    }
    out
}

fn line(task: &Task, before: &str, shown_above: Option<&str>, look: Look) -> String {
    let (mark, tone) = mark(task.status);
    let id = one_line(&task.task_id);
    let mut rest = vec![task.status.as_str().to_owned()];
    rest.extend(duration(task, look.now));
    if task.attempt > 1 {
        rest.push(format!("attempt {}", task.attempt));
    }
    if !task.name.is_empty() && task.name != task.task_id {
        rest.push(one_line(&task.name));
    }
    rest.extend(task.end_reason.as_ref().filter(|_| tone == Tone::Bad).map(reason::told));
    let others: Vec<String> =
        task.depends_on.iter().filter(|parent| Some(parent.as_str()) != shown_above).map(|parent| one_line(parent)).collect();
    if shown_above.is_some() && !others.is_empty() {
        rest.push(format!("also after {}", others.join(", ")));
    }
    let rest = format!("  {}", rest.join(" · "));
    let head = before.chars().count() + 2 + id.chars().count();
    let rest = match look.width {
        Some(width) => cut(&rest, width.saturating_sub(head).max(8)),
        None => rest,
    };
    format!("{}{} {id}{}\n", paint(before, Tone::Dim, look.colour), paint(mark, tone, look.colour), paint(&rest, Tone::Dim, look.colour))
}

/// Each task below one other.
struct Tree<'a> {
    roots: Vec<usize>,
    children: Vec<Vec<usize>>,
    /// The parent that each stands below.
    shown_above: Vec<Option<&'a str>>,
}

impl<'a> Tree<'a> {
    fn of(tasks: &'a [Task]) -> Self {
        let places: HashMap<&str, usize> = tasks.iter().enumerate().map(|(place, task)| (task.task_id.as_str(), place)).collect();
        let parents: Vec<Vec<usize>> =
            tasks.iter().map(|task| task.depends_on.iter().filter_map(|parent| places.get(parent.as_str()).copied()).collect()).collect();
        let depths = depths(&parents);
        let mut tree = Self { roots: Vec::new(), children: vec![Vec::new(); tasks.len()], shown_above: vec![None; tasks.len()] };
        for (task, parents) in parents.iter().enumerate() {
            // One that is in a circle, which no server sends, is a root: nothing is left out.
            match parents.iter().copied().filter(|parent| depths[*parent] < depths[task]).max_by_key(|parent| depths[*parent]) {
                Some(parent) => {
                    tree.children[parent].push(task);
                    tree.shown_above[task] = Some(&tasks[parent].task_id);
                }
                None => tree.roots.push(task),
            }
        }
        tree
    }
}

/// How far each is from the beginning: the longest way.
fn depths(parents: &[Vec<usize>]) -> Vec<usize> {
    let mut children = vec![Vec::new(); parents.len()];
    let mut open: Vec<usize> = parents.iter().map(Vec::len).collect();
    for (task, parents) in parents.iter().enumerate() {
        for parent in parents {
            children[*parent].push(task);
        }
    }
    let mut depths = vec![0; parents.len()];
    let mut ready: Vec<usize> = (0..parents.len()).filter(|task| open[*task] == 0).collect();
    while let Some(task) = ready.pop() {
        for child in &children[task] {
            depths[*child] = depths[*child].max(depths[task] + 1);
            open[*child] -= 1;
            if open[*child] == 0 {
                ready.push(*child);
            }
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: &str, after: &[&str]) -> Task {
        serde_json::from_value(serde_json::json!({"taskId": id, "name": id, "status": status, "dependsOn": after})).expect("a task")
    }

    fn look() -> Look {
        Look { now: Rfc3339(10_000), width: None, height: None, colour: false }
    }

    #[test]
    fn a_task_stands_below_its_last_parent_and_names_the_others() {
        let mut tasks = vec![
            task("scrape", "SUCCEEDED", &[]),
            task("analyze", "RUNNING", &[]),
            task("colours", "SUCCEEDED", &["scrape"]),
            task("fonts", "FAILED", &["scrape"]),
            task("join", "WAITING", &["colours", "fonts", "analyze"]),
            task("send", "WAITING", &["join"]),
        ];
        tasks[1].started_at = Some(Rfc3339(4_000));
        tasks[3].end_reason = Some(runvoy_wire::Reason { code: "exit".into(), message: "exit code 2".into() });
        insta::assert_snapshot!(draw(&tasks, look()), @r"
        ✓ scrape  SUCCEEDED
        ├─ ✓ colours  SUCCEEDED
        └─ ✗ fonts  FAILED · exit code 2
           ↓ · join  WAITING · also after colours, analyze
           ↓ · send  WAITING
        ● analyze  RUNNING · 6.0s
        ");
    }

    #[test]
    fn a_terminal_gets_what_fits() {
        let tasks: Vec<Task> = (0..50).map(|n| task(&format!("t{n}"), "WAITING", &[])).collect();
        let shown = draw(&tasks, Look { height: Some(5), width: Some(12), ..look() });
        assert_eq!(shown.lines().collect::<Vec<_>>(), ["· t0  WAITI…", "· t1  WAITI…", "· t2  WAITI…", "· t3  WAITI…", "… 46 more"]);
        assert_eq!(draw(&tasks, Look { height: Some(50), ..look() }).lines().count(), 50);
    }

    #[test]
    fn every_task_of_a_long_chain_and_of_a_circle_is_drawn_and_stays_narrow() {
        let name = |n: usize| format!("t{n}");
        let mut tasks: Vec<Task> = (0..5_000)
            .map(|n| {
                task(
                    &name(n),
                    "WAITING",
                    if n == 0 { vec![] } else { vec![name(n - 1)] }.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
                )
            })
            .collect();
        let shown = draw(&tasks, look());
        assert_eq!(shown.lines().count(), 5_000);
        assert!(shown.lines().all(|line| line.chars().count() < 40));
        tasks[0].depends_on = vec![name(4_999)];
        assert_eq!(draw(&tasks, look()).lines().count(), 5_000);
    }
}
