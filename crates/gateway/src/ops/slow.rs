//! Answers that may take long: CompleteMultipartUpload and the copies.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_wire::xml::{DECLARATION, without_declaration};
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::body::ResponseBody;
use crate::call::Call;
use crate::effects::{Did, Effects};
use crate::limits::KEEP_ALIVE_INTERVAL;
use crate::outcome::Outcome;
use crate::reply;

/// The result of the work: its document, and what it did to objects.
pub type Finished = (String, Did);

/// Answers with the document that `work` makes. The work goes on if the client goes away.
///
/// If the work ends soon, the answer is an ordinary one. Otherwise `200` is sent, with white space
/// at intervals until the work ends, and an error becomes the document, as S3 does for these
/// operations.
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
        let (document, done) = done?;
        did.get_or_init(|| done);
        Ok(document)
    });
    if let Ok(done) = timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
        return Ok(Outcome { reply: reply::ok_xml(flatten(done)?), effects });
    }
    let site = call.site();
    let rest = stream::unfold(Some(work), move |work| {
        let site = site.clone();
        async move {
            let mut work = work?;
            match timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
                Err(_) => Some((Bytes::from_static(b" "), Some(work))),
                Ok(done) => {
                    let document = flatten(done).unwrap_or_else(|error| site.document(&error));
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

fn flatten(done: <JoinHandle<Result<String>> as Future>::Output) -> Result<String> {
    done.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}
