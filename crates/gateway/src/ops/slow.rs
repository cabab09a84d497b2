//! Answers that may take long: CompleteMultipartUpload and the copies.

use std::future::Future;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::body::ResponseBody;
use crate::limits::KEEP_ALIVE_INTERVAL;
use crate::pipeline::Call;
use crate::reply::{self, Reply};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// Answers with the document that `work` makes. The work goes on if the client goes away.
///
/// Work that is soon done is answered plainly. Else `200` is sent with white space every now and then until it is, and
/// an error becomes the document, as S3 has it for these operations.
pub async fn answer(
    call: &Call<'_>,
    work: impl Future<Output = Result<String>> + Send + 'static,
) -> Result<Reply> {
    let mut work = tokio::spawn(work);
    if let Ok(done) = timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
        return flatten(done).map(reply::ok_xml);
    }
    let (resource, id) = (call.head.uri.path().to_owned(), call.cx.id);
    let host_id = call.gateway.host_id.as_str().to_owned();
    let rest = stream::unfold(Some(work), move |work| {
        let (resource, host_id) = (resource.clone(), host_id.clone());
        async move {
            let mut work = work?;
            match timeout(KEEP_ALIVE_INTERVAL, &mut work).await {
                Err(_) => Some((Bytes::from_static(b" "), Some(work))),
                Ok(done) => {
                    let document = flatten(done).unwrap_or_else(|error| {
                        tracing::error!(id = id.as_str(), path = ?resource, cause = ?std::error::Error::source(&error), "{error}");
                        error.render(&resource, id.as_str(), &host_id)
                    });
                    let bare = document.strip_prefix(DECLARATION).unwrap_or(&document).to_owned();
                    Some((bare.into(), None))
                }
            }
        }
    });
    let pieces = stream::once(async { Bytes::from_static(DECLARATION.as_bytes()) }).chain(rest);
    let mut reply = reply::ok_xml(String::new());
    *reply.body_mut() = ResponseBody::stream(pieces.map(Ok::<_, std::io::Error>).boxed());
    Ok(reply)
}

fn flatten(done: <JoinHandle<Result<String>> as Future>::Output) -> Result<String> {
    done.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}
