//! A gRPC client that knows nothing of the schema: it asks the server for it, as grpcurl does, and finds in it which
//! method a path stands for.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::{StreamExt, stream};
use maestro_e2e::Answer;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Calls {
    runtime: Runtime,
    channel: Channel,
    pool: DescriptorPool,
}

/// A call that a request of HTTP stands for.
pub(crate) struct Call {
    pub(crate) method: MethodDescriptor,
    pub(crate) request: DynamicMessage,
}

impl Calls {
    pub(crate) fn connect(port: u16) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?.timeout(PATIENCE);
        let channel = runtime.block_on(endpoint.connect())?;
        let pool = runtime.block_on(reflected(channel.clone()))?;
        Ok(Self { runtime, channel, pool })
    }

    /// `None`: no method has this path, or what is sent there is no message.
    pub(crate) fn of_http(&self, method: &str, path_and_query: &str, body: &str) -> Option<Call> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let (method, named) = self.route(method, path)?;
        let mut fields: Map<String, Value> = match body {
            "" => Map::new(),
            body => serde_json::from_str(body).ok()?,
        };
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        fields.extend(pairs.map(|(name, value)| (name.to_owned(), value.replace("%20", " ").into())));
        fields.extend(named);
        let request = message(&method.input(), &Value::Object(fields), false)?;
        Some(Call { method, request })
    }

    /// The method of a path, and what the path names.
    fn route(&self, verb: &str, path: &str) -> Option<(MethodDescriptor, Vec<(String, Value)>)> {
        let methods = self.pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let matching = methods.flat_map(|method| {
            let rules = rules(&method).into_iter().filter(|(other, _)| *other == verb);
            let matches = rules.filter_map(|(_, template)| matched(&template, path));
            matches.map(|named| (method.clone(), named)).collect::<Vec<_>>()
        });
        // What is written out goes before what is named.
        matching.min_by_key(|(_, named)| named.len())
    }

    /// Sends what was sent over HTTP, which must be answered in the same way.
    pub(crate) fn answer_like(
        &self,
        (verb, path, body): (&str, &str, &str),
        http: &Answer,
    ) -> anyhow::Result<()> {
        let call = self.of_http(verb, path, body).with_context(|| format!("{verb} {path}: not a call"))?;
        let called = self.call(&call);
        let is_like = match (http.status, &called) {
            (200, Ok(answer)) => message(&call.method.output(), &http.json()?, true).as_ref() == Some(answer),
            (204, Ok(answer)) => answer.encode_to_vec().is_empty(),
            (_, Ok(_)) => false,
            (_, Err(status)) => {
                http.json()?["code"] == status.code() as i64 && http.message() == status.message()
            }
        };
        ensure!(
            is_like,
            "{verb} {path} {body:.200}: {} {}, and over gRPC {called:?}",
            http.status,
            http.text
        );
        Ok(())
    }

    pub(crate) fn call(&self, call: &Call) -> Result<DynamicMessage, Status> {
        let method = &call.method;
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let path = path.parse().map_err(|_| Status::internal("not a path"))?;
        self.runtime.block_on(async {
            let mut client = tonic::client::Grpc::new(self.channel.clone());
            client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
            let codec = Dynamic(method.output());
            client
                .unary(Request::new(call.request.clone()), path, codec)
                .await
                .map(tonic::Response::into_inner)
        })
    }
}

/// The message that some JSON stands for.
pub(crate) fn message(descriptor: &MessageDescriptor, json: &Value, strict: bool) -> Option<DynamicMessage> {
    let options = prost_reflect::DeserializeOptions::new().deny_unknown_fields(strict);
    let read = DynamicMessage::deserialize_with_options(descriptor.clone(), json, &options).ok()?;
    // As it arrives: fields that are written and empty are no other than those that are not.
    DynamicMessage::decode(descriptor.clone(), read.encode_to_vec().as_slice()).ok()
}

/// The schema of all services that the server lists.
async fn reflected(channel: Channel) -> anyhow::Result<DescriptorPool> {
    let mut files = BTreeMap::new();
    let mut wanted = Vec::new();
    if let MessageResponse::ListServicesResponse(listed) =
        reflect(&channel, MessageRequest::ListServices(String::new())).await?
    {
        wanted.extend(listed.service.into_iter().map(|one| MessageRequest::FileContainingSymbol(one.name)));
    }
    while let Some(asked) = wanted.pop() {
        let MessageResponse::FileDescriptorResponse(answer) = reflect(&channel, asked).await? else {
            bail!("the server does not know its own schema");
        };
        for bytes in answer.file_descriptor_proto {
            let file = prost_reflect::prost_types::FileDescriptorProto::decode(bytes.as_slice())?;
            let missing = file.dependency.iter().filter(|name| !files.contains_key(*name)).cloned();
            wanted.extend(missing.map(MessageRequest::FileByFilename));
            files.insert(file.name().to_owned(), bytes);
        }
    }
    // As bytes, or the paths in the options of methods would be lost.
    let mut set = Vec::new();
    for file in files.values() {
        prost::encoding::bytes::encode(1, file, &mut set);
    }
    Ok(DescriptorPool::decode(set.as_slice())?)
}

async fn reflect(channel: &Channel, asked: MessageRequest) -> anyhow::Result<MessageResponse> {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(asked) };
    let sent = stream::iter([request]).chain(stream::pending());
    let mut client = ServerReflectionClient::new(channel.clone());
    let mut answers = client.server_reflection_info(sent).await?.into_inner();
    let answer = answers.message().await?.context("no answer")?;
    answer.message_response.context("an empty answer")
}

/// The verbs and paths of a method.
fn rules(method: &MethodDescriptor) -> Vec<(String, String)> {
    let Some(annotation) = method.parent_pool().get_extension_by_name("google.api.http") else {
        return Vec::new();
    };
    let options = method.options();
    let rule = options.get_extension(&annotation).into_owned();
    let Some(rule) = rule.as_message() else { return Vec::new() };
    let others = rule.get_field_by_name("additional_bindings").map(std::borrow::Cow::into_owned);
    let others = others.as_ref().and_then(prost_reflect::Value::as_list).unwrap_or_default();
    let all = [rule].into_iter().chain(others.iter().filter_map(prost_reflect::Value::as_message));
    let verbs = ["get", "put", "post", "delete", "patch"];
    let route = |rule: &DynamicMessage| {
        let verb = verbs.into_iter().find(|verb| rule.has_field_by_name(verb))?;
        Some((verb.to_uppercase(), rule.get_field_by_name(verb)?.as_str()?.to_owned()))
    };
    all.filter_map(route).collect()
}

/// What the path names, if it fits.
fn matched(template: &str, path: &str) -> Option<Vec<(String, Value)>> {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    if template.len() != path.len() {
        return None;
    }
    let mut named = Vec::new();
    for (expected, segment) in template.into_iter().zip(path) {
        match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => named.push((name.to_owned(), Value::from(segment))),
            None if expected == segment => {}
            None => return None,
        }
    }
    Some(named)
}

/// Messages of a schema that is known only now.
struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let decoded = DynamicMessage::decode(self.0.clone(), buffer);
        decoded.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
