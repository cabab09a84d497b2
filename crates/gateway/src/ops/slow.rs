//! Answers that may take long: those of CompleteMultipartUpload and of copies.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_types::VersionId;
use s3_wire::xml::{DECLARATION, without_declaration};
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::body::ResponseBody;
use crate::call::Call;
use crate::effects::{Did, Effects};
use crate::limits::KEEP_ALIVE_INTERVAL;
use crate::outcome::Outcome;
use crate::reply::{self, Reply};

/// The result of the work.
pub struct Finished {
    /// The document of the answer.
    pub document: String,
    /// The effects on objects.
    pub did: Did,
    /// The version that the answer names.
    pub version: Option<VersionId>,
    /// The version of a copy's source; `None` also for the null version, which S3 does not name
    /// here.
    pub source_version: Option<VersionId>,
}

/// Returns the answer with the document that `work` makes. If the client disconnects, the work
/// continues.
///
/// If the work ends soon, the answer is an ordinary one. Otherwise `200` is sent, with white space
/// at intervals until the work ends; a later error is sent as the document, as S3 does for these
/// operations. Headers that name versions are only in the ordinary answer.
pub async fn answer(
    call: &Call<'_>,
    work: impl Future<Output = Result<Finished>> + Send + 'static,
) -> Result<Outcome> {
    let place = call.cx.place.clone();
    let did = Arc::new(OnceLock::new());
    let effects = Effects::Later(Arc::clone(&did));
    let mut work = tokio::spawn(async move {
        let done = work.await;
        drop(place);
        let done = done?;
        did.get_or_init(|| done.did.clone());
        Ok(done)
    });
    if let Ok(done) = timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
        return Ok(Outcome { reply: reply_to(flatten(done)?), effects });
    }
    let site = call.site();
    let rest = stream::unfold(Some(work), move |work| {
        let site = site.clone();
        async move {
            let mut work = work?;
            match timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
                Err(_) => Some((Bytes::from_static(b" "), Some(work))),
                Ok(done) => {
                    let document = flatten(done).map(|done| done.document);
                    let document = document.unwrap_or_else(|error| site.document(&error));
                    Some((without_declaration(&document).to_owned().into(), None))
                }
            }
        }
    });
    let pieces = stream::once(async { Bytes::from_static(DECLARATION.as_bytes()) }).chain(rest);
    let mut reply = reply::ok_xml(String::new());
    *reply.body_mut() = ResponseBody::stream(pieces.map(Ok::<_, std::io::Error>).boxed());
    Ok(Outcome { reply, effects })
}

fn reply_to(done: Finished) -> Reply {
    let Finished { document, did: _, version, source_version } = done;
    let mut reply = reply::ok_xml(document);
    reply::set_version(reply.headers_mut(), version.as_ref());
    if let Some(version) = source_version {
        reply::set(reply.headers_mut(), "x-amz-copy-source-version-id", version.as_str());
    }
    reply
}

fn flatten(done: <JoinHandle<Result<Finished>> as Future>::Output) -> Result<Finished> {
    done.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_time_tells_versions() {
        let version = |id: &str| VersionId::new(id).unwrap();
        let told = |version, source_version| {
            let did = Did::default();
            let reply = reply_to(Finished { document: String::new(), did, version, source_version });
            ["x-amz-version-id", "x-amz-copy-source-version-id"]
                .map(|name| reply.headers().get(name).map(|value| value.to_str().unwrap().to_owned()))
        };
        assert_eq!(told(None, None), [None, None]);
        let both = ["made", "read"].map(|id| Some(id.to_owned()));
        assert_eq!(told(Some(version("made")), Some(version("read"))), both);
    }
}
