//! The tables of a published study of a clustered file system in a cloud (2023), whose inputs are
//! in the built-in catalogue, and the contradictions in the study (listed in docs/PLAN.md).

#![allow(clippy::unwrap_used, reason = "tests")]

use plan::{
    Catalogue, Costs, Durability, Load, Local, Operation, Outcome, SizeShare, Storage, catalogue_text, plan,
};

const GIB: f64 = 1_073_741_824.0;

fn catalogue() -> Catalogue {
    Catalogue::built_in().unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// A storage of gp3 volumes.
fn gp3(nodes: u32, kind: &str, volumes: u32, tib: f64, mib_per_second: f64) -> Storage {
    let catalogue = catalogue();
    catalogue.volume("gp3").unwrap().check("gp3", nodes, volumes, tib).unwrap();
    Storage {
        nodes,
        node: catalogue.node(kind).unwrap().clone(),
        volumes,
        volume: catalogue.volume("gp3").unwrap().volume("gp3", tib, Some(mib_per_second), None).unwrap(),
        local: Local::None,
        spread: catalogue.spread("+2n", nodes).unwrap(),
        gateways: None,
    }
}

/// The study's sequential test: files of 30 GiB, 12 clients.
fn of_its_test(storage: &Storage) -> Outcome {
    let load = Load {
        objects: 0.0,
        sizes: vec![SizeShare { bytes: 30.0 * GIB, share: 1.0 }],
        heads: 0.0,
        gets: 0.0,
        puts: 0.0,
        clients: 12.0,
        growth: 0.0,
        years: 0.0,
        durability: Durability::Full,
        from_memory: 0.0,
    };
    // Its clients spoke NFS: no gateway of ours was there to bind.
    let mut costs = Costs::built_in().unwrap();
    costs.get.iter_mut().chain(&mut costs.put).for_each(|segment| {
        segment.seconds_per_request = 0.0;
        segment.seconds_per_gib = 0.0;
    });
    plan(&load, storage, &costs).unwrap()
}

fn most(outcome: &Outcome, operation: Operation) -> (f64, &'static str) {
    let ceiling = outcome.ceilings.iter().find(|ceiling| ceiling.operation == operation).unwrap();
    (ceiling.mb_per_second, ceiling.bottleneck)
}

#[test]
fn protection() {
    for (nodes, strips, overhead, efficiency) in
        [(4, "2+2", "50", "50"), (5, "3+2", "40", "60"), (6, "4+2", "33", "67")]
    {
        let storage = gp3(nodes, "m5dn.8xlarge", 5, 1.0, 125.0);
        let capacity = storage.capacity();
        assert_eq!(storage.spread.to_string(), strips);
        assert_eq!(format!("{:.0}", capacity.overhead * 100.0), overhead);
        assert_eq!(format!("{:.0}", capacity.efficiency * 100.0), efficiency);
        assert_eq!(storage.survives(), "any 2 nodes, or any 2 volumes wherever they are");
    }
}

#[test]
fn nodes() {
    for (name, vcpus, gib, gbit, mbit) in [
        ("m5dn.8xlarge", 32, 128.0, 25.0, 6800.0),
        ("m5dn.12xlarge", 48, 192.0, 50.0, 9500.0),
        ("m5dn.16xlarge", 64, 256.0, 75.0, 13600.0),
        ("m5dn.24xlarge", 96, 384.0, 100.0, 19000.0),
    ] {
        let (catalogue, text) = (catalogue(), catalogue_text(&catalogue()));
        let node = catalogue.node(name).unwrap();
        assert_eq!((node.vcpus, node.memory_gib, node.volumes_mbit), (vcpus, Some(gib), Some(mbit)));
        assert!(near(node.network_gbit, gbit));
        let line = text.lines().find(|line| line.contains(name)).unwrap();
        let cells: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let numbers = [gib, gbit, mbit].map(|n| n.to_string());
        assert_eq!(cells[1..5], [&[vcpus.to_string()], numbers.as_slice()].concat());
    }
}

/// Raw and usable TiB of the smallest and the largest clusters.
#[test]
fn clusters() {
    let catalogue = catalogue();
    for (volume, nodes, smallest, largest) in [
        ("gp3", 4, (20.0, 10.0), (1024.0, 512.0)),
        ("gp3", 5, (25.0, 15.0), (1020.0, 612.0)),
        ("gp3", 6, (30.0, 20.0), (1022.4, 681.6)),
        ("st1", 4, (80.0, 40.0), (240.0, 120.0)),
        ("st1", 5, (100.0, 60.0), (300.0, 180.0)),
        ("st1", 6, (120.0, 80.0), (360.0, 240.0)),
    ] {
        let spread = catalogue.spread("+2n", nodes).unwrap();
        let (least, most) = catalogue.volume(volume).unwrap().clusters(nodes, spread).unwrap();
        for (what, (raw, usable)) in [(least, smallest), (most, largest)] {
            let same = near(what.raw_tib, raw) && near(what.usable_tib, usable);
            assert!(same, "{volume} {nodes}: {what:?}, not {raw} and {usable}");
        }
    }
}

/// floor(1024 / (nodes x volumes)), one decimal, for each allowed number; at most 16 TiB.
#[test]
fn largest_volumes() {
    let catalogue = catalogue();
    let gp3 = catalogue.volume("gp3").unwrap();
    assert_eq!(gp3.counts, [5, 6, 10, 12, 15, 18, 20]);
    let rows = [
        (4, [16.0, 16.0, 16.0, 16.0, 16.0, 14.2, 12.8]),
        (5, [16.0, 16.0, 16.0, 16.0, 13.6, 11.3, 10.2]),
        (6, [16.0, 16.0, 16.0, 14.2, 11.3, 9.4, 8.5]),
    ];
    for (nodes, sizes) in rows {
        for (count, size) in gp3.counts.iter().zip(sizes) {
            let largest = gp3.largest_tib(nodes, *count).unwrap();
            assert!(near(largest, size), "{nodes} x {count}: {largest}");
            assert!(gp3.check("gp3", nodes, *count, size).is_ok());
            let more = gp3.check("gp3", nodes, *count, size + 0.1).unwrap_err();
            let cure =
                if size < 16.0 { format!("{size} TiB are the largest") } else { "1 to 16 TiB".to_owned() };
            assert!(more.contains(&cure), "{more}");
        }
    }
}

#[test]
fn volumes_at_the_free_rate_cost_less() {
    for (volumes, tib, mib, usd) in [(10, 1.0, 125.0, "1.12"), (5, 2.0, 250.0, "1.16")] {
        let storage = gp3(6, "m5dn.12xlarge", volumes, tib, mib);
        let sum = f64::from(volumes) * storage.volume.mib_per_second;
        assert!(near(sum, 1250.0), "{sum} MiB/s a node");
        let node = storage.volume.usd_per_hour.unwrap() * f64::from(volumes);
        assert_eq!(format!("{node:.2}"), usd);
    }
}

#[test]
fn st1_has_its_rate_by_its_size() {
    let catalogue = catalogue();
    let st1 = catalogue.volume("st1").unwrap();
    for (tib, mib) in [(4.0, 160.0), (10.0, 400.0)] {
        assert!(near(st1.volume("st1", tib, None, None).unwrap().mib_per_second, mib));
    }
}

/// The study's best two results: once the sum of the volumes is above the node's limit, their
/// number and size do not matter.
#[test]
fn the_nodes_limit_binds_whatever_the_volumes() {
    let twelve = of_its_test(&gp3(6, "m5dn.12xlarge", 12, 1.0, 125.0));
    let six = of_its_test(&gp3(6, "m5dn.12xlarge", 6, 2.0, 300.0));
    for outcome in [&twelve, &six] {
        let (write, binds) = most(outcome, Operation::Put);
        assert_eq!(binds, "a node's limit for its volumes");
        // 6 x 1,187.5 MB/s, each byte one and a half times.
        assert!((write - 4750.0).abs() < 0.1, "{write}");
        let (read, binds) = most(outcome, Operation::Get);
        assert_eq!(binds, "a node's limit for its volumes");
        assert!((read - 7125.0).abs() < 0.1, "{read}");
    }
    for measured in [3930.0, 3955.0] {
        assert_eq!(format!("{:.0}", measured / most(&twelve, Operation::Put).0 * 100.0), "83");
    }
    // With five at the free rate the sum binds.
    let few = of_its_test(&gp3(6, "m5dn.12xlarge", 5, 1.0, 125.0));
    let (write, binds) = most(&few, Operation::Put);
    assert_eq!(binds, "sum of a node's volumes");
    assert!((write - 6.0 * 5.0 * 125.0 * 1.048_576 / 1.5).abs() < 0.1, "{write}");
}

/// The study's figures, and those that follow from its own rules.
#[test]
fn contradictions_are_not_copied() {
    let catalogue = catalogue();
    // 10,305 MB/s were read; the limit that it states for its nodes allows 7,125.
    let outcome = of_its_test(&gp3(6, "m5dn.12xlarge", 12, 1.0, 125.0));
    let (read, _) = most(&outcome, Operation::Get);
    assert_eq!(format!("{:.0}", 10_305.0 / read * 100.0), "145");
    // The smallest gp3 cluster is 24 TiB in one table and 20 in another: 4 nodes x 5 x 1 TiB are
    // 20.
    let spread = catalogue.spread("+2n", 4).unwrap();
    let smallest = catalogue.volume("gp3").unwrap().clusters(4, spread).unwrap().0;
    assert!(near(smallest.raw_tib, 20.0));
    // st1 was measured with volumes of 8 TiB, which are not allowed.
    let error = catalogue.volume("st1").unwrap().check("st1", 6, 6, 8.0).unwrap_err();
    assert_eq!(error, "there is no volume st1 of 8 TiB: use one of 4, 10 TiB");
}
