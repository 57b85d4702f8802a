//! What AWS answers when something goes wrong, word for word where the SDK reads it.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use super::fault::Call;

/// Another transaction is at the same item.
pub fn conflict(call: &Call) -> HttpResponse {
    let message = "Transaction is ongoing for the item";
    if call.operation() != "TransactWriteItems" {
        return refusal(400, json!({"__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "message": message}));
    }
    let count = call.body["TransactItems"].as_array().map_or(0, Vec::len);
    let reasons: Vec<Value> = (0..count)
        .map(|place| if place == 0 { json!({"Code": "TransactionConflict", "Message": message}) } else { json!({"Code": "None"}) })
        .collect();
    refusal(
        400,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]",
            "CancellationReasons": reasons,
        }),
    )
}

/// Not now.
pub fn throttled(call: &Call) -> HttpResponse {
    if call.operation() == "BatchGetItem" {
        // What a batch has no room for is no error: it is handed back.
        return response(200, json!({"Responses": {}, "UnprocessedKeys": call.body["RequestItems"]}));
    }
    let kind = match call.target.split('.').next().unwrap_or_default() {
        "DynamoDB_20120810" => "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "AmazonSQS" => "com.amazonaws.sqs#RequestThrottled",
        "" => {
            let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>";
            return HttpResponse::new(StatusCode::try_from(503).expect("a status"), SdkBody::from(text));
        }
        _ => "ThrottlingException",
    };
    refusal(400, json!({"__type": kind, "message": "Rate exceeded"}))
}

/// Messages that were sent, it says.
pub fn sent(call: &Call) -> HttpResponse {
    let receipt = |id: &Value| json!({"Id": id, "MessageId": "00000000-0000-0000-0000-000000000000", "MD5OfMessageBody": "0"});
    match entries(call) {
        Some(entries) => {
            response(200, json!({"Successful": entries.iter().map(|entry| receipt(&entry["Id"])).collect::<Vec<_>>(), "Failed": []}))
        }
        None => response(200, receipt(&Value::Null)),
    }
}

/// The entries of a batch, any of which may fail alone.
pub fn entries(call: &Call) -> Option<&Vec<Value>> {
    matches!(call.operation(), "PutEvents" | "SendMessageBatch" | "DeleteMessageBatch").then(|| call.body["Entries"].as_array())?
}

/// Says of an entry that it failed.
pub fn add_failed(call: &Call, body: &mut Value, (place, entry): &(usize, Value)) {
    if call.operation() == "PutEvents" {
        let failed = json!({"ErrorCode": "InternalFailure", "ErrorMessage": "an internal failure"});
        let count = body["FailedEntryCount"].as_u64().unwrap_or(0) + 1;
        body["FailedEntryCount"] = json!(count);
        if let Some(entries) = body["Entries"].as_array_mut() {
            if entries.len() > entries_left(call) {
                entries.remove(*place);
            }
            entries.insert((*place).min(entries.len()), failed);
        }
        return;
    }
    if let Some(good) = body["Successful"].as_array_mut() {
        good.retain(|good| good["Id"] != entry["Id"]);
    }
    let failed = json!({"Id": entry["Id"], "Code": "InternalError", "SenderFault": false, "Message": "an internal failure"});
    match body["Failed"].as_array_mut() {
        Some(all) => all.push(failed),
        None => body["Failed"] = json!([failed]),
    }
}

fn entries_left(call: &Call) -> usize {
    entries(call).map_or(0, Vec::len) - 1
}

/// Messages come in no order.
pub fn reverse(body: &mut Value) {
    if let Some(messages) = body["Messages"].as_array_mut() {
        messages.reverse();
    }
}

fn refusal(status: u16, body: Value) -> HttpResponse {
    response(status, body)
}

fn response(status: u16, body: Value) -> HttpResponse {
    let mut response = HttpResponse::new(StatusCode::try_from(status).expect("a status"), SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}
