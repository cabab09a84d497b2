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

/// What the work comes to: its document, and what it did.
pub type Done = (String, Did);

/// Answers with the document that `work` makes. The work goes on if the client goes away.
///
/// Work that is soon done is answered plainly. Else `200` is sent with white space every now and
/// then until it is, and an error becomes the document, as S3 has it for these operations.
pub async fn answer(
    call: &Call<'_>,
    work: impl Future<Output = Result<Done>> + Send + 'static,
) -> Result<Outcome> {
    let place = call.cx.place.clone();
    let mut work = tokio::spawn(async move {
        let done = work.await;
        drop(place);
        done
    });
    if let Ok(done) = timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
        let (document, did) = flatten(done)?;
        return Ok(Outcome::done(reply::ok_xml(document), did));
    }
    let site = call.site();
    let later = Arc::new(OnceLock::new());
    let effects = Effects::Later(Arc::clone(&later));
    let rest = stream::unfold(Some(work), move |work| {
        let (site, later) = (site.clone(), Arc::clone(&later));
        async move {
            let mut work = work?;
            match timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
                Err(_) => Some((Bytes::from_static(b" "), Some(work))),
                Ok(done) => {
                    let document = match flatten(done) {
                        Ok((document, did)) => {
                            later.get_or_init(|| did);
                            document
                        }
                        Err(error) => site.document(&error),
                    };
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

fn flatten(done: <JoinHandle<Result<Done>> as Future>::Output) -> Result<Done> {
    done.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}
