//! Opens the access log and the audit log by the options of the server.

use std::sync::Arc;

use crate::access_log::AccessLog;
use crate::audit::AuditLog;
use crate::config::ServeOptions;

/// The access log and the audit log, if the options ask for them.
pub type LogsOfLines = (Option<Arc<AccessLog>>, Option<Arc<AuditLog>>);

/// Opens the logs.
pub fn open(options: &ServeOptions) -> Result<LogsOfLines, String> {
    let access_log = options
        .access_log
        .as_ref()
        .map(|to| AccessLog::start(to.open("--access-log")?, options.access_log_format).map(Arc::new));
    let audit = options
        .audit_log
        .as_ref()
        .map(|to| AuditLog::start(to.open("--audit-log")?, options.audit_log_required).map(Arc::new));
    Ok((access_log.transpose()?, audit.transpose()?))
}
