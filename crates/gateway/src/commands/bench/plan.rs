//! Makes the plan of a measurement from the options of `slipway bench`.

use std::collections::BTreeSet;
use std::time::Duration;

use bench::units::{Rate, show_size};
use bench::{Credentials, Endpoint, Payload, Plan, Step, Test, Trust, preset_steps};
use s3_types::limits::PARTS_MAX;

use super::options::{BenchOptions, Operation, PayloadKind, Sweep};
use crate::credentials;
use crate::state_dir::Access;

pub(super) fn plan(options: &BenchOptions) -> Result<Plan, String> {
    let trust = Trust { ca: options.ca.clone(), insecure: options.insecure };
    let urls = options.endpoint.as_deref().unwrap_or_default().split(',');
    let endpoints = urls.map(|url| Endpoint::new(url, &trust)).collect::<Result<Vec<_>, _>>()?;
    if let Some(pid) = options.server_pid.iter().find(|pid| !bench::process::exists(**pid)) {
        return Err(format!("--server-pid: there is no process {pid}"));
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
            "--payload signed: signatures are valid for 15 minutes, so that a step (warm-up and duration) may take \
             at most 10 minutes".to_owned()
        );
    }
    let (swept, fastest) = match &options.concurrency {
        Some(Sweep::Of(swept)) => (Some(swept.as_slice()), false),
        // What each step begins with; it finds its own.
        Some(Sweep::Fastest) => (Some([1].as_slice()), true),
        None => (None, false),
    };
    let mut steps = match &options.preset {
        Some(preset) => preset_steps(preset, endpoints, options.scale, swept)
            .ok_or_else(|| format!("--preset: there is no preset {preset}; --list-presets shows them"))?,
        None => own_steps(options, endpoints, swept.unwrap_or(&[16]))?,
    };
    for step in &mut steps {
        step.fastest |= fastest;
        refuse_foreign(options, step)?;
    }
    Ok(steps)
}

/// Returns the steps for one operation.
fn own_steps(options: &BenchOptions, endpoints: usize, swept: &[usize]) -> Result<Vec<Step>, String> {
    let Some(test) = options.operation.map(Operation::test) else {
        return Err("nothing to measure: give an operation or --preset".to_owned());
    };
    let (part_size, page) = (options.part_size.unwrap_or(64 << 20), options.page.unwrap_or(1000));
    let default = if matches!(test, Test::Multipart | Test::Streams) { 1 << 30 } else { 1 << 20 };
    let sizes = options.size.as_ref().map_or_else(|| vec![default], |sizes| sizes.0.clone());
    let mut steps = Vec::new();
    for &size in &sizes {
        if size.div_ceil(part_size) > PARTS_MAX.into() && test == Test::Multipart {
            let (size, part_size) = (show_size(size), show_size(part_size));
            return Err(format!(
                "{size} in parts of {part_size} are too many parts: S3 allows {PARTS_MAX}; use a larger --part-size"
            ));
        }
        if size == 0 && (options.range.is_some() || test == Test::Streams) {
            return Err("an object of size 0 cannot be read in ranges: use a larger --size".to_owned());
        }
        for &concurrency in swept {
            steps.push(Step {
                test,
                size,
                range: options.range,
                part_size,
                mix: options.mix.unwrap_or_default(),
                page: page.into(),
                concurrency,
                fastest: false,
                endpoints,
                most: options.count,
            });
        }
    }
    Ok(steps)
}

/// Refuses options that have no effect on this step: they were meant for another operation.
fn refuse_foreign(options: &BenchOptions, step: &Step) -> Result<(), String> {
    let test = step.test;
    // An upload is of one object, and each stream has its own.
    let with_objects = !matches!(test, Test::Multipart | Test::Streams);
    let with_rate = !matches!(test, Test::Multipart | Test::Burst);
    let repeatable = matches!(test, Test::Put | Test::Get | Test::Head | Test::List | Test::Mixed);
    for (given, name, is_for_it) in [
        (options.range.is_some(), "--range", matches!(test, Test::Get | Test::Streams)),
        (options.part_size.is_some(), "--part-size", test == Test::Multipart),
        (options.mix.is_some(), "--mix", test == Test::Mixed),
        (options.page.is_some(), "--page", matches!(test, Test::List | Test::Mixed)),
        (options.objects.is_some(), "--objects", with_objects),
        (options.rate.is_some(), "--rate", with_rate),
        (options.count.is_some(), "--count", test != Test::Burst),
        (step.fastest, "--concurrency fastest", repeatable),
    ] {
        if given && !is_for_it {
            return Err(format!("{name} has no effect on {}: leave it out", test.name()));
        }
    }
    let ends = test == Test::Delete || step.most.is_some();
    if ends && (step.fastest || matches!(options.rate, Some(Rate::OfPeak(_)))) {
        return Err(
            "--concurrency fastest and --rate with a share measure each step several times, which is not possible \
             for delete or with --count"
                .to_owned(),
        );
    }
    Ok(())
}

fn keys(options: &BenchOptions) -> Result<Credentials, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let region = options.region.clone().filter(|region| !region.is_empty());
    let region = region.or_else(|| variable("AWS_DEFAULT_REGION")).unwrap_or_else(|| "us-east-1".to_owned());
    if let Some(file) = &options.credentials_file {
        let credential = credentials::find(Some(file), |_| None, None, Access::Read)?.credential;
        return Ok(Credentials {
            access_key: credential.access_key.as_str().to_owned(),
            secret_key: credential.secret_key.expose().to_owned().into(),
            security_token: None,
            region,
        });
    }
    let needed = |name: &str| {
        variable(name).ok_or_else(|| {
            format!("the variable {name} is not set: requests are signed with it; set it, or use --credentials-file")
        })
    };
    Ok(Credentials {
        access_key: needed("AWS_ACCESS_KEY_ID")?,
        secret_key: needed("AWS_SECRET_ACCESS_KEY")?.into(),
        security_token: variable("AWS_SESSION_TOKEN").map(Into::into),
        region,
    })
}
