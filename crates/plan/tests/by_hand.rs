//! Figures computed by hand from docs/decisions/0023-plan.md.

#![allow(clippy::unwrap_used, reason = "tests")]

use plan::{Costs, Durability, Footprint, Load, Local, NodeType, SizeShare, Spread, Storage, Volume};

fn storage(nodes: u32, volumes: u32, local: Local, spread: Spread) -> Storage {
    Storage {
        nodes,
        node: NodeType {
            vcpus: 4,
            memory_gib: None,
            network_gbit: 10.0,
            volumes_mbit: None,
            usd_per_hour: None,
        },
        volumes,
        volume: Volume {
            name: "disk".to_owned(),
            tib: 1.0,
            mib_per_second: 1000.0,
            iops: Some(1e5),
            io_bytes_most: 262_144.0,
            usd_per_hour: None,
        },
        local,
        spread,
        gateways: None,
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b.abs().max(1.0)
}

#[test]
fn a_small_object() {
    let (strips, copies) = (Spread::Strips { data: 4, parity: 2 }, Spread::Copies(3));
    let (full, none) = (Durability::Full, Durability::None);
    // On volumes; a PUT's bytes, and operations; a GET's operations.
    for (storage, durability, [on_volumes, put, operations, get]) in [
        // A block and two parities, three inodes, three journals.
        (storage(6, 2, Local::None, strips), full, [3.0 * 4672.0, 3.0 * 8768.0, 6.0, 2.0]),
        (storage(6, 2, Local::None, strips), none, [3.0 * 4672.0, 3.0 * 4672.0, 3.0, 2.0]),
        (storage(3, 2, Local::None, copies), full, [3.0 * 4672.0, 3.0 * 8768.0, 6.0, 2.0]),
        (storage(1, 2, Local::Mirror(2), Spread::None), full, [2.0 * 4672.0, 2.0 * 8768.0, 4.0, 2.0]),
        // Block and two parities are read and written, for the data and for the journal.
        (storage(1, 8, Local::Raid(2), Spread::None), full, [4672.0 / 0.75, 8768.0 / 0.75, 12.0, 2.0]),
        (storage(1, 8, Local::Raidz(2), Spread::None), full, [3.0 * 4672.0, 3.0 * 8768.0, 6.0, 4.0]),
    ] {
        let one = Footprint::of(4096.0, &storage, durability);
        let same = near(one.bytes_on_volumes, on_volumes)
            && near(one.put_bytes, put)
            && near(one.put_operations, operations)
            && near(one.get_operations, get);
        assert!(same, "{} {}: {one:?}", storage.local, storage.spread);
    }
    let empty = Footprint::of(0.0, &storage(1, 1, Local::None, Spread::None), none);
    assert!(near(empty.bytes_on_volumes, 576.0) && near(empty.put_operations, 0.0));
}

/// Two of four nodes have a gateway, each file has two copies: 100 PUTs and 50 GETs of 4.096 MB.
#[test]
fn the_network_carries_internal_and_external_traffic() {
    let storage = Storage { gateways: Some(2), ..storage(4, 2, Local::None, Spread::Copies(2)) };
    let load = Load {
        objects: 0.0,
        sizes: vec![SizeShare { bytes: 4_096_000.0, share: 1.0 }],
        heads: 0.0,
        gets: 50.0,
        puts: 100.0,
        clients: 30.0,
        growth: 0.0,
        years: 0.0,
        durability: Durability::None,
        from_memory: 0.0,
    };
    let outcome = plan::plan(&load, &storage, &Costs::built_in().unwrap()).unwrap();
    let of = |name: &str| outcome.bottlenecks.iter().find(|one| one.name == name).unwrap();
    // Written 409.6 MB/s, twice, of which three quarters go to other nodes: 614.4. Read 204.8, of
    // which 153.6 come from others.
    let into = 0.5 * (409.6 + 153.6) + 614.4 / 4.0;
    let out = 0.5 * (204.8 + 614.4) + 153.6 / 4.0;
    assert!(near(of("network into a node").demand, into), "{:?}", of("network into a node"));
    assert!(near(of("network out of a node").demand, out), "{:?}", of("network out of a node"));
    assert!(near(of("network out of a node").limit, 1250.0));
    assert!(near(of("network out of a node").headroom.unwrap(), 1250.0 / out));
    let moved = (2.0 * (409.6 + 100.0 * 576.0 / 1e6) + 204.8) / 4.0;
    assert!(near(of("sum of a node's volumes").demand, moved), "{:?}", of("sum of a node's volumes"));
    assert!(near(outcome.milliseconds_a_request.unwrap(), 200.0));
    // 875 MB/s are 70 %. Into: 563.2 of the gateways and 153.6 of each node; out: 819.2 and 38.4.
    assert_eq!(outcome.gateways.needed, Some(1.0));
    let slower = Storage { node: NodeType { network_gbit: 5.0, ..storage.node.clone() }, ..storage };
    let outcome = plan::plan(&load, &slower, &Costs::built_in().unwrap()).unwrap();
    // Of 437.5: into 563.2 / (437.5 - 153.6) = 1.98, out 819.2 / (437.5 - 38.4) = 2.05.
    assert_eq!(outcome.gateways.needed, Some(3.0));
    let note = "too few gateways for peaks: 3 needed for at most 70 % busy, 2 planned: --gateways 3";
    assert!(outcome.fits && outcome.notes.iter().any(|one| one == note), "{:?}", outcome.notes);
    // What nodes tell each other is more than 70 % of 200 MB/s.
    let slowest = Storage { node: NodeType { network_gbit: 1.6, ..slower.node.clone() }, ..slower };
    let outcome = plan::plan(&load, &slowest, &Costs::built_in().unwrap()).unwrap();
    assert_eq!(outcome.gateways.needed, None);
    assert!(
        outcome.notes.iter().any(|one| one.contains("with any number of gateways")),
        "{:?}",
        outcome.notes
    );
}
