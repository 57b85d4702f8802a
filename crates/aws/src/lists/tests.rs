//! Random executions in every standing, some of them not in the indexes yet and some still there as they were before: whatever is asked is
//! answered as by somebody who looks at all of them.

mod oracle;
mod world;

use std::collections::BTreeSet;

use runvoy_conformance::chance::Chance;
use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::spec::Needs;
use runvoy_model::status::Status;
use runvoy_model::time::UnixMs;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::store::ListQuery;

use self::world::{BEGINNING, DAY_MS, QUEUES, USERS, World};
use crate::execution;

/// How many executions there are in a world, and how many questions of a kind are asked.
const EXECUTIONS: usize = 120;
const QUESTIONS: usize = 20;

/// Runs a play with a world of random executions; with several where everything is proved.
fn with_world(seed: u64, executions: usize, play: impl AsyncFn(&mut Chance, &World)) {
    let worlds = if std::env::var_os("RUNVOY_PROVE").is_some() { 20 } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for number in 0..worlds {
            let mut chance = Chance::new(seed + 1_000 * number);
            let mut world = World::new().await;
            for _ in 0..executions {
                world.add(&mut chance).await;
            }
            play(&mut chance, &world).await;
        }
    });
}

fn maybe<T>(chance: &mut Chance, percent: usize, value: impl FnOnce(&mut Chance) -> T) -> Option<T> {
    chance.percent(percent).then(|| value(chance))
}

fn random_list(chance: &mut Chance, world: &World) -> ListQuery {
    let user = |chance: &mut Chance| if chance.percent(5) { "nobody@x".to_owned() } else { USERS[chance.below(USERS.len())].to_owned() };
    let statuses = if chance.percent(50) { 0 } else { 1 + chance.below(3) };
    ListQuery {
        statuses: (0..statuses).map(|_| Status::ALL[chance.below(7)]).collect(),
        owner: maybe(chance, 20, user),
        created_by: maybe(chance, 20, user),
        lock: maybe(chance, 10, |_| world::name("prod")),
        queue: maybe(chance, 20, |chance| world::name(QUEUES[chance.below(QUEUES.len())])),
        job: maybe(chance, 15, world::job),
        since: maybe(chance, 25, world::time),
        until: maybe(chance, 25, world::time),
        after: maybe(chance, 40, |chance| world.all[chance.below(world.all.len())].id),
        limit: if chance.percent(60) { chance.below(12) } else { usize::MAX },
    }
}

fn ids(executions: &[Execution]) -> Vec<ExecutionId> {
    executions.iter().map(|execution| execution.id).collect()
}

#[test]
fn a_list_has_what_is_asked_for_newest_first() {
    with_world(1, EXECUTIONS, async |chance, world| {
        for _ in 0..QUESTIONS * 3 {
            let query = random_list(chance, world);
            let expected = oracle::list(&world.all, &query);
            assert_eq!(ids(&world.lists.list(&query).await.expect("a list")), ids(&expected), "{query:?}");
            // Too many are open to look at all of them.
            assert_eq!(world.lists.page(&query, 3).await.expect("a list"), expected, "{query:?}");
        }
        // Pages follow each other without gap or repeat.
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = world.lists.list(&ListQuery { after, limit: 7, ..ListQuery::default() }).await.expect("a page");
            after = page.last().map(|execution| execution.id);
            seen.extend(ids(&page));
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids(&oracle::list(&world.all, &ListQuery { limit: usize::MAX, ..ListQuery::default() })));
    });
}

#[test]
fn an_id_is_found_by_its_beginning_or_end_of_any_length() {
    with_world(2, EXECUTIONS, async |chance, world| {
        for _ in 0..QUESTIONS * 2 {
            let text = world.all[chance.below(world.all.len())].id.to_string();
            let digits = chance.below(33);
            let digits = if chance.percent(50) { &text[..digits] } else { &text[32 - digits..] };
            let digits = if chance.percent(20) { digits.to_uppercase() } else { digits.to_owned() };
            let max = if chance.percent(50) { 1 + chance.below(3) } else { 1_000 };
            assert_eq!(world.lists.find(&digits, max).await.expect("a search"), oracle::find(&world.all, &digits, max), "{digits} {max}");
        }
        for odd in ["zz", "é", &"0".repeat(33), "0123456789abcdef0123456789abcdef"] {
            assert_eq!(world.lists.find(odd, 9).await.expect("a search"), [], "{odd}");
        }
        assert_eq!(world.lists.find("0", 0).await.expect("a search"), []);
    });
}

#[test]
fn the_first_in_line_are_leased_first() {
    with_world(3, EXECUTIONS, async |chance, world| {
        for _ in 0..QUESTIONS {
            let queues: Vec<_> = (0..chance.below(4)).map(|_| world::name(QUEUES[chance.below(QUEUES.len())])).collect();
            let serves: Vec<_> = Needs::ALL.into_iter().filter(|_| chance.percent(70)).collect();
            let now = world::time(chance);
            let max = [0, 1, 3, 10, 1_000][chance.below(5)];
            let pass = maybe(chance, 60, world::pass);
            let (expected, earliest) = oracle::ready(&world.all, &queues, &serves, now, max, pass.as_ref());
            let found = world.lists.ready(&queues, &serves, now, max, pass.as_ref()).await.expect("candidates");
            assert_eq!(ids(&found), ids(&expected), "{queues:?} {serves:?} {now:?} {max}");
            assert_eq!(found, expected);
            assert_eq!(world.lists.next_ready(&queues, &serves).await.expect("a time"), earliest, "{queues:?} {serves:?}");
        }
    });
}

#[test]
fn leases_waits_queues_and_counts_are_those_of_all_executions() {
    with_world(4, EXECUTIONS, async |chance, world| {
        let (lists, all) = (&world.lists, &world.all);
        assert_eq!(lists.open_leases().await.expect("leases"), oracle::open_leases(all));
        for at in [UnixMs(i64::MIN), world::time(chance), world::time(chance), UnixMs(i64::MAX)] {
            assert_eq!(lists.waits_ended(at).await.expect("waits"), oracle::waits_ended(all, at), "{at:?}");
        }
        assert_eq!(lists.queues().await.expect("queues"), oracle::queues(all));
        let counts = || async {
            let counts = lists.counts().await.expect("counts");
            (counts.pending, counts.active, counts.executions)
        };
        let expected = oracle::counts(all);
        assert_eq!(counts().await, expected);
        assert_eq!(counts().await, expected, "with the days that are over remembered");
    });
}

#[test]
fn a_day_that_is_written_to_again_is_counted_again() {
    with_world(5, 20, async |chance, world| {
        let write = async |chance: &mut Chance, number: u64| {
            let mut late = world::execution(chance, number);
            let mut bytes = *late.id.as_bytes();
            bytes[..6].copy_from_slice(&(BEGINNING.0 - 40 * DAY_MS).to_be_bytes()[2..]);
            late.id = ExecutionId::from_bytes(bytes);
            let process = world.another_process();
            process.note_new(&late).await.expect("noted");
            world.put(execution::to_item(&late, &world.lists.config)).await;
            assert_eq!(process.counts().await.expect("counts").executions, count(&world.another_process()).await);
        };
        write(chance, 1_000).await;
        let before = count(&world.another_process()).await;
        assert!(world.mark("count#2026-12-06").await.is_some(), "a day that is over is counted once");
        write(chance, 1_001).await;
        assert_eq!(count(&world.another_process()).await, before + 1);
    });
}

async fn count(lists: &super::Lists) -> u64 {
    lists.counts().await.expect("counts").executions
}

#[test]
fn dead_letters_come_in_the_order_they_were_given_up() {
    with_world(6, EXECUTIONS, async |chance, world| {
        for _ in 0..QUESTIONS * 2 {
            let letters: Vec<_> = world.all.iter().filter_map(|execution| Some((execution.dead_since()?, execution.id))).collect();
            let query = DeadQuery {
                queue: world::name(QUEUES[chance.below(QUEUES.len())]),
                owner: maybe(chance, 30, |chance| USERS[chance.below(USERS.len())].to_owned()),
                oldest_first: chance.percent(50),
                after: maybe(chance, 40, |chance| *chance.pick(&letters).expect("a letter")),
                until: maybe(chance, 30, world::time),
                limit: if chance.percent(50) { chance.below(6) } else { usize::MAX },
            };
            let expected = oracle::dead(&world.all, &query);
            assert_eq!(world.lists.dead(&query).await.expect("letters"), expected, "{query:?}");
            assert_eq!(world.lists.dead_count(&query).await.expect("a number"), expected.len() as u64, "{query:?}");
        }
    });
}

/// Somebody else wrote it, and the indexes tell otherwise: something may be missing, but nothing is told that is not so.
#[test]
fn an_index_that_lags_behind_others_never_makes_a_list_lie() {
    with_world(7, EXECUTIONS, async |chance, world| {
        let (stranger, mut missing) = (world.another_process(), 0);
        for _ in 0..QUESTIONS {
            let query = ListQuery { limit: usize::MAX, ..random_list(chance, world) };
            let expected: BTreeSet<_> = ids(&oracle::list(&world.all, &query)).into_iter().collect();
            let found = stranger.list(&query).await.expect("a list");
            assert!(ids(&found).iter().all(|id| expected.contains(id)), "{query:?}");
            assert!(found.is_sorted_by(|first, second| first.id > second.id));
            missing += expected.len() - found.len();
        }
        assert!(missing > 0, "the indexes do not lag: the other tests would prove nothing");
        let queues: Vec<_> = QUEUES.iter().map(|queue| world::name(queue)).collect();
        let now = BEGINNING.plus_ms(3 * DAY_MS);
        let (due, _) = oracle::ready(&world.all, &queues, &Needs::ALL, now, usize::MAX, None);
        let found = stranger.ready(&queues, &Needs::ALL, now, 5, None).await.expect("candidates");
        assert!(!found.is_empty() && found.iter().all(|execution| due.contains(execution)));
        let leases = oracle::open_leases(&world.all);
        assert!(stranger.open_leases().await.expect("leases").iter().all(|lease| leases.contains(lease)));
    });
}

#[test]
fn a_large_spec_is_kept_apart_and_comes_back() {
    with_world(8, 0, async |chance, world| {
        let mut large = world::execution(chance, 10_000);
        large.spec.env.insert("BIG".into(), "x".repeat(300 * 1024));
        large.spec.command = "ü".repeat(5_000);
        execution::store_large(&large, world.lists.blobs.as_ref()).await.expect("kept");
        let item = execution::to_item(&large, &world.lists.config);
        assert!(item.contains_key("spec_blob") && !item.contains_key("spec"));
        world.put(item).await;
        assert_eq!(world.lists.read(&[large.id, large.id]).await.expect("read"), [large]);
    });
}

/// The store's methods are called from any thread.
#[test]
fn what_looks_can_be_sent_to_another_thread() {
    fn sent<T: Send>(_: T) {}
    fn all(lists: &super::Lists, execution: &Execution, list: &ListQuery, dead: &DeadQuery) {
        sent(lists.list(list));
        sent(lists.find("00", 1));
        sent(lists.ready(&[], &[], UnixMs(0), 1, None));
        sent(lists.next_ready(&[], &[]));
        sent((lists.open_leases(), lists.waits_ended(UnixMs(0)), lists.queues(), lists.counts()));
        sent((lists.dead(dead), lists.dead_count(dead), lists.note_new(execution)));
    }
    let _ = all;
}
