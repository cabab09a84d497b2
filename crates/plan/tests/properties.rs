//! Properties of all plans: more of any resource never makes a load slower, and nothing is usable
//! that does not exist.

#![allow(clippy::unwrap_used, reason = "tests")]

use plan::{
    Catalogue, Costs, Durability, Load, Local, NodeType, Outcome, SizeShare, Spread, Storage, Volume,
};
use proptest::prelude::*;

fn locals() -> impl Strategy<Value = Local> {
    prop_oneof![
        Just(Local::None),
        Just(Local::Mirror(2)),
        (1..=2_u32).prop_map(Local::Raid),
        (1..=3_u32).prop_map(Local::Raidz),
    ]
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::None),
        (2..=4_u32).prop_map(Spread::Copies),
        (1..=16_u32, 1..=4_u32).prop_map(|(data, parity)| Spread::Strips { data, parity }),
    ]
}

prop_compose! {
    fn storages()(
        local in locals(),
        spread in spreads(),
        more_nodes in 0..10_u32,
        pairs in 3..12_u32,
        vcpus in 1..128_u32,
        network_gbit in 0.01..200.0_f64,
        volumes_mbit in proptest::option::of(1.0..40_000.0_f64),
        mib_per_second in 0.1..3000.0_f64,
        iops in proptest::option::of(0.001..100_000.0_f64),
        tib in 0.001..30.0_f64,
    ) -> Storage {
        Storage {
            nodes: spread.width() + more_nodes,
            node: NodeType { vcpus, memory_gib: None, network_gbit, volumes_mbit, usd_per_hour: None },
            volumes: pairs * 2,
            volume: Volume {
                name: "own".to_owned(), tib, mib_per_second, iops, io_bytes_most: 262_144.0,
                usd_per_hour: Some(0.1),
            },
            local,
            spread,
            gateways: None,
        }
    }
}

prop_compose! {
    fn loads()(
        bytes in prop_oneof![0.0..100_000.0_f64, 1e5..1e10_f64],
        heads in 0.0..1e4_f64, gets in 0.0..1e4_f64, puts in 0.1..1e4_f64,
        objects in 0.0..1e9_f64, from_memory in 0.0..1.0_f64,
        durability in prop_oneof![Just(Durability::Full), Just(Durability::None)],
    ) -> Load {
        Load {
            objects, sizes: vec![SizeShare { bytes: bytes.floor(), share: 0.5 }, SizeShare { bytes: 4096.0, share: 0.5 }],
            heads, gets, puts, clients: 10.0, growth: 0.2, years: 2.0, durability, from_memory,
        }
    }
}

fn planned(load: &Load, storage: &Storage) -> Outcome {
    plan::plan(load, storage, &Costs::built_in().unwrap()).unwrap()
}

/// Figures that grow with the slowness of a storage: the time of each operation alone, and the
/// highest use of a resource by the load.
fn slowness(outcome: &Outcome) -> Vec<f64> {
    let used = outcome.bottlenecks.first().map_or(0.0, |one| one.used);
    outcome.ceilings.iter().map(|one| 1.0 / one.per_second).chain([used]).collect()
}

/// A change of a storage or a load.
type Change<'a, T> = &'a dyn Fn(&mut T);

proptest! {
    #[test]
    fn more_of_anything_is_never_slower(storage in storages(), load in loads()) {
        let before = planned(&load, &storage);
        let changes: [(&str, Change<'_, Storage>); 7] = [
            ("nodes", &|s| s.nodes += 1),
            // Mirrors take them in pairs.
            ("volumes", &|s| s.volumes += 2),
            ("processors", &|s| s.node.vcpus *= 2),
            ("network", &|s| s.node.network_gbit *= 1.5),
            ("node's limit", &|s| s.node.volumes_mbit = s.node.volumes_mbit.map(|mbit| mbit * 1.5)),
            ("volumes' rate", &|s| s.volume.mib_per_second *= 1.5),
            ("operations", &|s| s.volume.iops = s.volume.iops.map(|iops| iops * 1.5)),
        ];
        // With the second node begins the traffic between nodes, on the same network: that may be
        // slower than one node by itself.
        let first = usize::from(storage.nodes == 1);
        for (what, change) in changes.into_iter().skip(first) {
            let mut more = storage.clone();
            change(&mut more);
            let after = planned(&load, &more);
            for (a, b) in slowness(&before).into_iter().zip(slowness(&after)) {
                prop_assert!(b <= a * (1.0 + 1e-9), "more {what}: {a} became {b}");
            }
            prop_assert!(after.fill.share <= before.fill.share * (1.0 + 1e-9), "more {what}: fuller");
        }
    }

    #[test]
    fn more_gateways_are_never_slower(storage in storages(), load in loads()) {
        for gateways in 1..storage.nodes.min(6) {
            let few = planned(&load, &Storage { gateways: Some(gateways), ..storage.clone() });
            let more = planned(&load, &Storage { gateways: Some(gateways + 1), ..storage.clone() });
            for (a, b) in slowness(&few).into_iter().zip(slowness(&more)) {
                prop_assert!(b <= a * (1.0 + 1e-9), "{gateways} gateways: {a} became {b}");
            }
        }
    }

    /// With the number of gateways that are needed, they are at most 70 % busy, and with one less
    /// they are not: their processors, and the network of their nodes with the traffic between
    /// nodes.
    #[test]
    fn as_many_gateways_are_needed_as_keep_a_third_free(storage in storages(), load in loads()) {
        let busiest = |gateways: u32| {
            let outcome = planned(&load, &Storage { gateways: Some(gateways), ..storage.clone() });
            let counted = ["gateways' CPU", "network into a node", "network out of a node"];
            let used = outcome.bottlenecks.iter().filter(|one| counted.contains(&one.name));
            used.map(|one| one.used).fold(0.0, f64::max)
        };
        let outcome = planned(&load, &storage);
        let noted = outcome.notes.iter().any(|note| note.contains("gateways"));
        for gateways in 1..=storage.nodes {
            let enough = outcome.gateways.needed.is_some_and(|needed| needed <= f64::from(gateways));
            let busy = busiest(gateways);
            prop_assert!((busy - 0.7).abs() < 1e-6 || enough == (busy < 0.7), "{gateways}: {busy}");
            if gateways == storage.nodes && (busy - 0.7).abs() > 1e-6 {
                prop_assert_eq!(noted, !enough);
            }
        }
    }

    #[test]
    fn nothing_is_usable_that_is_not_there(storage in storages(), load in loads()) {
        let outcome = planned(&load, &storage);
        let capacity = outcome.capacity;
        prop_assert!(capacity.usable_tib > 0.0 && capacity.usable_tib <= capacity.raw_tib * (1.0 + 1e-9));
        prop_assert!((capacity.overhead + capacity.efficiency - 1.0).abs() < 1e-9);
        for footprint in &outcome.footprints {
            prop_assert!(footprint.bytes_on_volumes > footprint.bytes);
            prop_assert!(footprint.put_bytes >= footprint.bytes_on_volumes);
            prop_assert!(footprint.spread_bytes >= footprint.bytes && footprint.get_bytes >= footprint.bytes);
        }
    }

    /// A large object takes as much more space as the protection says; with ZFS a little more,
    /// since its rows are not all full.
    #[test]
    fn a_large_object_takes_what_protection_says(storage in storages()) {
        let bytes = 64.0 * 1_073_741_824.0;
        let one = plan::Footprint::of(bytes, &storage, Durability::Full);
        let factor = one.bytes_on_volumes / bytes * storage.capacity().efficiency;
        let most = if matches!(storage.local, Local::Raidz(_)) { 1.15 } else { 1.001 };
        prop_assert!((0.999..most).contains(&factor), "{factor}");
    }

    /// At its ceiling, a load uses up the resource that limits it, and no other.
    #[test]
    fn a_ceiling_is_where_something_is_used_up(storage in storages(), load in loads()) {
        for ceiling in planned(&load, &storage).ceilings {
            let first = &ceiling.bottlenecks[0];
            prop_assert_eq!(first.name, ceiling.bottleneck);
            prop_assert!((first.used - 1.0).abs() < 1e-9);
            for one in &ceiling.bottlenecks {
                prop_assert!(one.used <= 1.0 + 1e-9 && (one.used * one.limit - one.demand).abs() <= 1e-6 * one.limit);
                if let Some(headroom) = one.headroom {
                    prop_assert!((headroom * one.used - 1.0).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn what_can_not_be_is_refused_with_a_cure() {
    let catalogue = Catalogue::built_in().unwrap();
    let good = Storage {
        nodes: 6,
        node: catalogue.node("m5dn.12xlarge").unwrap().clone(),
        volumes: 12,
        volume: catalogue.volume("gp3").unwrap().volume("gp3", 1.0, None, None).unwrap(),
        local: Local::None,
        spread: Spread::Strips { data: 4, parity: 2 },
        gateways: None,
    };
    let load = Load {
        objects: 1e6,
        sizes: vec![SizeShare { bytes: 4096.0, share: 1.0 }],
        heads: 0.0,
        gets: 10.0,
        puts: 10.0,
        clients: 1.0,
        growth: 0.0,
        years: 1.0,
        durability: Durability::Full,
        from_memory: 0.0,
    };
    assert!(planned(&load, &good).fits);
    let costs = Costs::built_in().unwrap();
    let storages: [(Change<'_, Storage>, &str); 13] = [
        (&|s| s.nodes = 0, "at least one node"),
        (&|s| s.nodes = 5, "4+2 needs 6 nodes, one for each strip or copy, but there are 5: use more nodes"),
        (&|s| s.volumes = 0, "at least one node with one volume"),
        (&|s| (s.local, s.volumes) = (Local::Raid(2), 3), "raid6 needs at least 4 volumes"),
        (&|s| (s.local, s.volumes) = (Local::Mirror(2), 5), "use a multiple of 2"),
        (&|s| s.gateways = Some(7), "use at most 6"),
        (&|s| s.gateways = Some(0), "--gateways 1"),
        (&|s| s.volume.tib = f64::NAN, "size, TiB: NaN is not between 0.000001 and"),
        (&|s| s.volume.mib_per_second = 1e-300, "rate, MiB/s"),
        (&|s| s.volume.iops = Some(0.0), "a volume's operations a second: 0 is not between 0.000001 and"),
        (&|s| s.node.vcpus = 0, "processors"),
        (&|s| s.node.network_gbit = f64::INFINITY, "network"),
        (&|s| s.node.volumes_mbit = Some(0.0), "limit for its volumes"),
    ];
    for (change, why) in storages {
        let mut bad = good.clone();
        change(&mut bad);
        let error = plan::plan(&load, &bad, &costs).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let loads: [(Change<'_, Load>, &str); 5] = [
        (&|l| l.gets = -1.0, "GETs a second: -1 is not between"),
        (&|l| l.puts = f64::NAN, "PUTs a second"),
        (&|l| l.objects = f64::INFINITY, "objects"),
        (&|l| l.from_memory = 1.1, "memory"),
        (&|l| l.sizes.clear(), "shares"),
    ];
    for (change, why) in loads {
        let mut bad = load.clone();
        change(&mut bad);
        let error = plan::plan(&bad, &good, &costs).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let error = catalogue.node("m6.large").unwrap_err();
    assert!(error.contains("m5dn.8xlarge"), "{error}");
    let error = catalogue.spread("+2n", 7).unwrap_err();
    assert!(error.contains("for 4, 5, 6 nodes, not for 7: give the protection as numbers"), "{error}");
    let gp3 = catalogue.volume("gp3").unwrap();
    assert!(gp3.check("gp3", 4, 7, 1.0).unwrap_err().contains("use 5, 6, 10"));
    assert!(gp3.volume("gp3", 1.0, Some(1001.0), None).unwrap_err().contains("at most 1000 MiB/s"));
    assert!(gp3.volume("gp3", 1.0, None, Some(20_000.0)).unwrap_err().contains("at most 16000"));
}
