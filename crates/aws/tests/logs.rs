//! The logs of executions on AWS: every promise of a log store against two emulators, through faults of the caller's and of the network, and what
//! only this store has: blocks that are cut, seals that are killed, two servers at one log, and the mirror.

mod emulator;

mod logs {
    mod append;
    mod blob;
    mod damage;
    mod mirror;
    mod seal;
    mod stage;
    mod wire;

    mod conformance {
        use runvoy_aws::LogConfig;
        use runvoy_conformance::fault::ThroughFaults;
        use runvoy_conformance::log_store_conformance;

        use super::stage::{faulty_harness, harness, packing};
        use crate::emulator::Emulator;

        mod on_ministack {
            use super::*;
            log_store_conformance!(harness(Emulator::ministack(), packing()).await);
        }

        mod on_ministack_through_faults {
            use super::*;
            log_store_conformance!(ThroughFaults::new(harness(Emulator::ministack(), packing()).await, 0x00c0_ffee));
        }

        /// Both layers of faults: the caller repeats what the network did not bring through.
        mod on_ministack_through_a_bad_network {
            use super::*;
            log_store_conformance!(ThroughFaults::new(faulty_harness(Emulator::ministack(), packing(), 7).await, 0xdead_beef));
        }

        mod on_moto {
            use super::*;
            log_store_conformance!(harness(Emulator::moto(), LogConfig::default()).await);
        }

        mod on_moto_through_faults {
            use super::*;
            log_store_conformance!(ThroughFaults::new(harness(Emulator::moto(), packing()).await, 0x0bad_cafe));
        }
    }
}
