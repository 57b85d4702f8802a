//! Late events: what a reader is given next is always the first, by attempt and number, of all that is stored and was not given to it yet.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use runvoy_engine::{Holder, JobEventFilter, JobEventFollower, RunRequest};
use runvoy_model::command::Fence;
use runvoy_model::execution::Execution;
use runvoy_model::job_event::Place;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;

use crate::scene::{BEGAN, Scene, output};
use crate::stage::{caller, command, fence};

const ATTEMPTS: u32 = 3;

#[derive(Debug, Clone)]
enum Move {
    /// Events of an attempt, each in a request of its own, in this order.
    Publish { attempt: u32, sequences: Vec<u64> },
    /// The attempt is lost, and the next one begins.
    NextAttempt,
    /// Readers read what there is.
    Read,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let publish = (1..=ATTEMPTS, prop::collection::vec(1_u64..12, 1..6));
    let one = prop_oneof![
        4 => publish.prop_map(|(attempt, sequences)| Move::Publish { attempt, sequences }),
        1 => Just(Move::NextAttempt),
        2 => Just(Move::Read),
    ];
    prop::collection::vec(one, 1..14)
}

/// The oracle: what is stored, each event with whether the reader was given it.
struct Oracle {
    filter: JobEventFilter,
    stored: BTreeMap<i64, bool>,
}

impl Oracle {
    fn store(&mut self, attempt: u32, sequence: u64) {
        let number = Place { sequence, part: 0 }.reader_sequence(attempt);
        let at = UnixMs(BEGAN + i64::try_from(sequence).expect("small"));
        if number >= self.filter.from_sequence && self.filter.from.is_none_or(|from| at >= from) {
            self.stored.entry(number).or_insert(false);
        }
    }

    /// What a reader is given that reads everything.
    fn take(&mut self) -> Vec<i64> {
        let left = self.stored.iter_mut().filter(|(_, given)| !**given);
        left.map(|(number, given)| {
            *given = true;
            *number
        })
        .collect()
    }
}

struct Reader {
    follower: JobEventFollower,
    oracle: Oracle,
}

impl Reader {
    async fn new(scene: &Scene, filter: JobEventFilter) -> Self {
        let ada = caller("ada@example.com", Role::Admin);
        let follower = scene.stage.engine.follow_job_events(&ada, &scene.execution.id.to_string(), filter.clone()).await;
        Self { follower: follower.expect("it is there"), oracle: Oracle { filter, stored: BTreeMap::new() } }
    }

    /// Reads until nothing comes for longer than an event waits for those before it. No time passes in truth.
    async fn read(&mut self) -> Vec<i64> {
        let mut given = Vec::new();
        while let Ok(next) = tokio::time::timeout(Duration::from_secs(20), self.follower.next()).await {
            match next.expect("the store answers") {
                Some(event) => given.push(event.sequence()),
                None => break,
            }
        }
        given
    }

    async fn check(&mut self) {
        let expected = self.oracle.take();
        assert_eq!(self.read().await, expected, "{:?}", self.oracle.filter);
    }
}

struct Play {
    scene: Scene,
    attempts: Vec<(Fence, Execution)>,
    readers: Vec<Reader>,
}

impl Play {
    async fn new() -> Self {
        let scene = Scene::of(RunRequest { retries: Some(i64::from(ATTEMPTS) - 1), ..command("job") }).await;
        let attempts = vec![(scene.fence, scene.execution.clone())];
        let mut play = Self { scene, attempts, readers: Vec::new() };
        let all = JobEventFilter::default;
        let second = Place { sequence: 4, part: 0 }.reader_sequence(2);
        for filter in [
            all(),
            JobEventFilter { from_sequence: 5, ..all() },
            JobEventFilter { from_sequence: second, ..all() },
            JobEventFilter { from: Some(UnixMs(BEGAN)), ..all() },
            JobEventFilter { from: Some(UnixMs(BEGAN + 6)), ..all() },
        ] {
            let reader = Reader::new(&play.scene, filter).await;
            play.readers.push(reader);
        }
        play.begun().await;
        play
    }

    /// An attempt that publishes nothing would have events made from its lines.
    async fn begun(&mut self) {
        let attempt = u32::try_from(self.attempts.len()).expect("few");
        self.publish(attempt, &[6]).await;
    }

    async fn publish(&mut self, attempt: u32, sequences: &[u64]) {
        let Some((fence, _)) = self.attempts.get(attempt as usize - 1).cloned() else { return };
        let holder = Holder::trusted(self.scene.worker.id);
        for sequence in sequences {
            let event = output(*sequence, format!("{sequence}\n").as_bytes());
            self.scene.stage.engine.publish_events(&holder, fence, vec![event]).await.expect("kept");
            self.readers.iter_mut().for_each(|reader| reader.oracle.store(attempt, *sequence));
        }
    }

    async fn next_attempt(&mut self) {
        if self.attempts.len() >= ATTEMPTS as usize {
            return;
        }
        self.scene.lapse().await;
        self.scene.stage.clock.pass(600_000);
        let execution = self.scene.stage.lease(&self.scene.worker, 30_000).await.expect("the next attempt");
        self.scene.execution = execution.clone();
        self.attempts.push((fence(&execution), execution));
        self.begun().await;
    }

    async fn run(moves: Vec<Move>) {
        let mut play = Self::new().await;
        for step in moves {
            match step {
                Move::Publish { attempt, sequences } => play.publish(attempt, &sequences).await,
                Move::NextAttempt => play.next_attempt().await,
                Move::Read => {
                    for reader in &mut play.readers {
                        reader.check().await;
                    }
                }
            }
        }
        play.scene.finish(0).await;
        for mut reader in std::mem::take(&mut play.readers) {
            reader.check().await;
            // Whoever reads again gets everything in its place.
            let mut again = Reader::new(&play.scene, reader.oracle.filter.clone()).await;
            let whole: Vec<i64> = reader.oracle.stored.into_keys().collect();
            assert_eq!(again.read().await, whole, "{:?} read again", reader.oracle.filter);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_reader_is_given_the_first_of_what_it_was_not_given(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(Play::run(moves));
    }
}

/// Of large events, each of several records, some are cut by the end of what a reader has looked through.
#[tokio::test(start_paused = true)]
async fn a_large_late_event_is_given_once() {
    let mut play = Play::new().await;
    let large = |sequence: u64| output(sequence, &vec![b'x'; 300_000]);
    let holder = Holder::trusted(play.scene.worker.id);
    for sequence in [20, 22, 19, 21, 12, 24, 23] {
        play.scene.stage.engine.publish_events(&holder, play.scene.fence, vec![large(sequence)]).await.expect("kept");
    }
    assert_eq!(play.readers[0].read().await, [6, 12, 19, 20, 21, 22, 23, 24]);
    for sequence in [18, 17] {
        play.scene.stage.engine.publish_events(&holder, play.scene.fence, vec![large(sequence)]).await.expect("kept");
    }
    assert_eq!(play.readers[0].read().await, [17, 18]);
    assert_eq!(play.readers[3].read().await, [6, 12, 17, 18, 19, 20, 21, 22, 23, 24]);
}

/// What our own worker wrote under a lapsed lease comes before what the next attempt wrote, where a reader was not given that yet.
#[tokio::test(start_paused = true)]
async fn late_lines_come_before_those_of_the_next_attempt() {
    use runvoy_model::log::{BlockBuilder, Record, Stream};
    use runvoy_ports::log::Append;
    let mut scene = Scene::of(RunRequest { retries: Some(1), ..command("job") }).await;
    let first = scene.fence;
    let mut reader = Reader::new(&scene, JobEventFilter::default()).await;
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    scene.execution = scene.stage.lease(&scene.worker, 30_000).await.expect("the second attempt");
    let number = |attempt, sequence| Place { sequence, part: 0 }.reader_sequence(attempt);
    let begun = reader.read().await;
    assert_eq!(begun, [number(1, 1), number(1, 2)], "the first attempt's start and end");
    for (fence, late) in [(fence(&scene.execution), false), (first, true)] {
        let mut block = BlockBuilder::default();
        block.push(Record { at: scene.stage.engine.now(), stream: Stream::Stdout, cont: false, eol: true, bytes: b"x" });
        let append = Append { attempt: fence.attempt, first_seq: Some(1), late, block: block.take() };
        scene.stage.logs().append(fence.execution, append).await.expect("appended");
    }
    assert_eq!(reader.read().await, [number(1, 3), number(2, 1), number(2, 2)]);
}
