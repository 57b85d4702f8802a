//! What each operation costs on AWS, counted: the tables in `docs/aws.md` are what this counts. `RUNVOY_WRITE_DOCS=1` writes them there.

mod emulator;

mod cost {
    mod life;
    mod log;
    mod play;
    mod rule;
    mod sheet;

    use runvoy_aws::EventLayout;

    use self::play::Play;
    use self::sheet::{million, operations, places, rates, write_or_compare};

    #[tokio::test]
    async fn the_documentation_says_what_operations_cost() {
        let mut seed = Play::new(EventLayout::Seed).await;
        seed.executions().await;
        seed.locks().await;
        seed.jobs().await;
        seed.reads().await;
        seed.messages().await;
        seed.logs().await;
        seed.events(" (layout `seed`)").await;
        let mut sharded = Play::new(EventLayout::Sharded).await;
        sharded.events(" (layout `sharded`)").await;
        seed.rows.push(sharded.rows.pop().expect("the publish comes last"));
        write_or_compare("operations", &operations(&seed.rows));

        let (mut one, mut other) = (Play::new(EventLayout::Seed).await, Play::new(EventLayout::Sharded).await);
        let lives = [one.lives(false).await, other.lives(false).await, one.lives(true).await, other.lives(true).await];
        write_or_compare("life", &places(&lives));
        write_or_compare("million", &million(&seed.rows, &lives));
        write_or_compare("rates", &rates(&lives));
    }
}
