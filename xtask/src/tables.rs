//! The tables of the code for the black-box tests: operations, error codes and limits, as JSON.

use s3_wire::ErrorCode;
use s3_wire::operation::{OPERATIONS, OperationInfo, Selector, Support};
use serde_json::{Value, json};

/// The file in which they are read (`tests/support/tables.py`).
pub const PATH: &str = "tests/support/tables.json";

macro_rules! limits {
    ($($in_crate:ident::$name:ident)*) => { json!({ $(stringify!($name): $in_crate::limits::$name,)* }) };
}

/// The document.
pub fn document() -> String {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| (*code).into()).collect();
    let tables = json!({
        "operations": OPERATIONS.iter().map(operation).collect::<Vec<_>>(),
        "error_codes": codes,
        "limits": limits! {
            gateway::HEADER_LINES_MAX
            gateway::OPERATIONS_CONNECTIONS_MAX
            gateway::REFUSED_LINGERING_MAX
            s3_wire::DELETE_BODY_BYTES_MAX
            s3_wire::HEADER_SECTION_BYTES_MAX
            s3_wire::XML_BODY_BYTES_MAX
        },
    });
    format!("{tables:#}\n")
}

fn operation(row: &OperationInfo) -> Value {
    let (parameters, header) = match row.selector {
        Selector::Plain => (json!([]), None),
        Selector::Sub(a) => (json!([[a, null]]), None),
        Selector::SubValue(a, value) => (json!([[a, value]]), None),
        Selector::SubBoth(a, b) => (json!([[a, null], [b, null]]), None),
        Selector::Header(header) => (json!([]), Some(header)),
        Selector::SubBothHeader(a, b, header) => (json!([[a, null], [b, null]]), Some(header)),
    };
    json!({
        "name": row.name,
        "method": row.method.as_str(),
        "shape": format!("{:?}", row.shape),
        "parameters": parameters,
        "header": header,
        "support": match row.support {
            Support::Served => "served",
            Support::Unset => "unset",
            Support::Refused => "refused",
        },
    })
}
