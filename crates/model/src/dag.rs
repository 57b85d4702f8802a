//! The shape of a job, checked before anything of it is written: every task once, every dependency there, no circle. What is wrong is named, a
//! circle by its path.

use std::collections::HashMap;

/// What is wrong with the shape of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// Two tasks have one name.
    #[error("task {0} is defined twice")]
    Twice(String),
    /// A task waits for one that is not there.
    #[error("task {task} depends on {parent}, which is not a task of this job")]
    Unknown {
        /// Who waits.
        task: String,
        /// For whom.
        parent: String,
    },
    /// A task waits for itself, by way of others.
    #[error("tasks depend on each other in a cycle: {}", .0.join(" → "))]
    Circle(Vec<String>),
}

/// Checks new tasks, each with what it depends on, against each other and against those that are there already.
pub fn check<'a>(new: &[(&'a str, Vec<&'a str>)], known: impl Fn(&str) -> bool) -> Result<(), DagError> {
    let mut places = HashMap::with_capacity(new.len());
    for (place, (task, _)) in new.iter().enumerate() {
        if known(task) || places.insert(*task, place).is_some() {
            return Err(DagError::Twice((*task).to_owned()));
        }
    }
    let mut parents: Vec<Vec<usize>> = Vec::with_capacity(new.len());
    for (task, depends_on) in new {
        let mut own = Vec::with_capacity(depends_on.len());
        for parent in depends_on {
            match places.get(parent) {
                Some(place) => own.push(*place),
                // What is there already waits for nothing new, so that no circle can go through it.
                None if known(parent) => {}
                None => return Err(DagError::Unknown { task: (*task).to_owned(), parent: (*parent).to_owned() }),
            }
        }
        parents.push(own);
    }
    match circle(&parents) {
        Some(path) => Err(DagError::Circle(path.into_iter().map(|place| new[place].0.to_owned()).collect())),
        None => Ok(()),
    }
}

/// A circle, from a task back to it, if there is one. Without recursion: a chain may be as long as the job.
fn circle(parents: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnPath,
        Left,
    }
    let mut seen = vec![Seen::Never; parents.len()];
    for start in 0..parents.len() {
        if seen[start] != Seen::Never {
            continue;
        }
        seen[start] = Seen::OnPath;
        let mut path = vec![(start, 0)];
        while let Some((task, next)) = path.last_mut() {
            let Some(parent) = parents[*task].get(*next).copied() else {
                seen[*task] = Seen::Left;
                path.pop();
                continue;
            };
            *next += 1;
            match seen[parent] {
                Seen::Left => {}
                Seen::Never => {
                    seen[parent] = Seen::OnPath;
                    path.push((parent, 0));
                }
                Seen::OnPath => {
                    let begin = path.iter().position(|(task, _)| *task == parent).expect("it is on the path");
                    let mut circle: Vec<usize> = path[begin..].iter().map(|(task, _)| *task).collect();
                    circle.push(parent);
                    return Some(circle);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(tasks: &[(&str, &[&str])]) -> Result<(), DagError> {
        let tasks: Vec<(&str, Vec<&str>)> = tasks.iter().map(|(task, parents)| (*task, parents.to_vec())).collect();
        check(&tasks, |known| known == "old")
    }

    #[test]
    fn a_diamond_and_a_late_addition_are_sound() {
        assert_eq!(checked(&[("d", &["b", "c"]), ("b", &["a"]), ("c", &["a", "old"]), ("a", &[])]), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(checked(&[("a", &[]), ("a", &[])]), Err(DagError::Twice("a".into())));
        assert_eq!(checked(&[("old", &[])]), Err(DagError::Twice("old".into())));
        assert_eq!(checked(&[("a", &["x"])]), Err(DagError::Unknown { task: "a".into(), parent: "x".into() }));
        let path = |names: &[&str]| Err(DagError::Circle(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(checked(&[("a", &["a"])]), path(&["a", "a"]));
        assert_eq!(checked(&[("r", &["a"]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"])]), path(&["a", "b", "c", "a"]));
    }

    #[test]
    fn a_chain_of_twenty_thousand_is_no_trouble() {
        let names: Vec<String> = (0..20_000).map(|n| format!("t{n}")).collect();
        let mut tasks: Vec<(&str, Vec<&str>)> = vec![(names[0].as_str(), Vec::new())];
        tasks.extend(names.windows(2).map(|pair| (pair[1].as_str(), vec![pair[0].as_str()])));
        assert_eq!(check(&tasks, |_| false), Ok(()));
        tasks[0].1.push(names[19_999].as_str());
        assert!(matches!(check(&tasks, |_| false), Err(DagError::Circle(path)) if path.len() == 20_001));
    }
}
