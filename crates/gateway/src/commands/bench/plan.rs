//! What is to be measured, out of what is asked.

use std::collections::BTreeSet;
use std::time::Duration;

use bench::units::{Rate, show_size};
use bench::{Credentials, Endpoint, Payload, Plan, Step, Test, Trust, preset_steps};
use s3_types::limits::PARTS_MAX;

use super::options::{BenchOptions, Operation, PayloadKind};
use crate::credentials;

pub(super) fn plan(options: &BenchOptions) -> Result<Plan, String> {
    let trust = Trust { ca: options.ca.clone(), insecure: options.insecure };
    let urls = options.endpoint.as_deref().unwrap_or_default().split(',');
    let endpoints = urls.map(|url| Endpoint::new(url, &trust)).collect::<Result<Vec<_>, _>>()?;
    if let Some(pid) = options.server_pid.iter().find(|pid| !bench::process::exists(**pid)) {
        return Err(format!("there is no process {pid}"));
    }
    Ok(Plan {
        credentials: keys(options)?,
        bucket: options.bucket.clone(),
        keep: options.keep,
        payload: match options.payload {
            PayloadKind::Unsigned => Payload::Unsigned,
            PayloadKind::Signed => Payload::Signed,
        },
        threads: options.threads.map_or_else(bench::default_threads, usize::from),
        objects: options.objects,
        duration: options.duration,
        warm_up: options.warm_up,
        rate: options.rate,
        repeat: options.repeat,
        timeout: options.timeout,
        server_pids: options.server_pid.iter().copied().collect::<BTreeSet<_>>(),
        devices: options.device.clone(),
        preset: options.preset.clone(),
        steps: steps(options, endpoints.len())?,
        endpoints,
    })
}

fn steps(options: &BenchOptions, endpoints: usize) -> Result<Vec<Step>, String> {
    let twice = matches!(options.rate, Some(Rate::OfPeak(_)));
    let takes = (options.warm_up + options.duration) * if twice { 2 } else { 1 };
    if options.payload == PayloadKind::Signed && takes > Duration::from_mins(10) {
        return Err(
            "signed headers are good for 15 minutes: with --payload signed a step may take 10".to_owned()
        );
    }
    let swept = options.concurrency.as_ref().map(|sweep| sweep.0.as_slice());
    if let Some(preset) = &options.preset {
        let steps = preset_steps(preset, endpoints, options.scale, swept);
        let steps = steps.ok_or_else(|| format!("no preset {preset}"))?;
        steps.iter().try_for_each(|step| refuse_foreign(options, step.test))?;
        return Ok(steps);
    }
    let Some(test) = options.operation.map(Operation::test) else {
        return Err("nothing to measure".to_owned());
    };
    refuse_foreign(options, test)?;
    let (part_size, page) = (options.part_size.unwrap_or(64 << 20), options.page.unwrap_or(1000));
    let default = if test == Test::Multipart { 1 << 30 } else { 1 << 20 };
    let sizes = options.size.as_ref().map_or_else(|| vec![default], |sizes| sizes.0.clone());
    let mut steps = Vec::new();
    for &size in &sizes {
        if size.div_ceil(part_size) > PARTS_MAX.into() && test == Test::Multipart {
            let (size, part_size) = (show_size(size), show_size(part_size));
            return Err(format!("{size} in parts of {part_size}: S3 allows {PARTS_MAX} parts"));
        }
        if size == 0 && options.range.is_some() {
            return Err("an empty object has no ranges".to_owned());
        }
        for &concurrency in swept.unwrap_or(&[16]) {
            steps.push(Step {
                test,
                size,
                range: options.range,
                part_size,
                mix: options.mix.unwrap_or_default(),
                page: page.into(),
                concurrency,
                endpoints,
                most: options.count,
            });
        }
    }
    Ok(steps)
}

/// Options that say nothing of this test were meant for another.
fn refuse_foreign(options: &BenchOptions, test: Test) -> Result<(), String> {
    let listing = [Test::List, Test::Mixed].as_slice();
    let all_but_multipart =
        [Test::Put, Test::Get, Test::Head, Test::List, Test::Delete, Test::Mixed].as_slice();
    for (given, name, of) in [
        (options.range.is_some(), "range", [Test::Get].as_slice()),
        (options.part_size.is_some(), "part-size", &[Test::Multipart]),
        (options.mix.is_some(), "mix", &[Test::Mixed]),
        (options.page.is_some(), "page", listing),
        (options.objects.is_some(), "objects", all_but_multipart),
        (options.threads.is_some(), "threads", all_but_multipart),
        (options.rate.is_some(), "rate", all_but_multipart),
    ] {
        if given && !of.contains(&test) {
            return Err(format!("--{name} says nothing of {}", test.name()));
        }
    }
    if matches!(options.rate, Some(Rate::OfPeak(_))) && (test == Test::Delete || options.count.is_some()) {
        return Err("a share of the peak needs work that does not end: no delete, no --count".to_owned());
    }
    Ok(())
}

fn keys(options: &BenchOptions) -> Result<Credentials, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let region = options.region.clone().filter(|region| !region.is_empty());
    let region = region.or_else(|| variable("AWS_DEFAULT_REGION")).unwrap_or_else(|| "us-east-1".to_owned());
    if let Some(file) = &options.credentials_file {
        let credential = credentials::find(Some(file), |_| None, None)?.credential;
        return Ok(Credentials {
            access_key: credential.access_key.as_str().to_owned(),
            secret_key: credential.secret_key.expose().to_owned().into(),
            security_token: None,
            region,
        });
    }
    let needed = |name: &str| {
        variable(name).ok_or_else(|| {
            format!("{name} is not set; it is one of the keys to sign with (see --credentials-file, too)")
        })
    };
    Ok(Credentials {
        access_key: needed("AWS_ACCESS_KEY_ID")?,
        secret_key: needed("AWS_SECRET_ACCESS_KEY")?.into(),
        security_token: variable("AWS_SESSION_TOKEN").map(Into::into),
        region,
    })
}
