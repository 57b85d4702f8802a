//! One admitted call as its handler sees it, and how handlers are run: a change runs to its end whoever goes away, a refusal of one is kept in the trail.

use std::future::Future;
use std::sync::Arc;

use runvoy_engine::{Caller, Engine, Holder, Subject};
use runvoy_model::id::{ExecutionId, WorkerId};
use runvoy_model::name::Name;
use runvoy_ports::memory::Reservation;
use runvoy_rpc::connectrpc::{ConnectError, RequestContext, Response, ServiceResult, ServiceStream};

use super::answered::Answered;
use super::error::RpcFault;
use super::refusal::{self, ItemRefusals};
use super::rule::RpcRule;
use super::token::{BadToken, Task, account_tag};
use super::upload::Upload;
use crate::app::{OpenStream, State};
use crate::fault::Fault;
use crate::room::Load;

/// Who calls, put into a request once that is known. Without it no handler runs.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) caller: Caller,
    pub(super) rule: RpcRule,
    /// What the call holds of the room for large requests.
    pub(super) load: Arc<Load>,
    /// The same, message by message, where there are many.
    pub(super) upload: Option<Arc<Upload>>,
    /// What it leaves beside its answer.
    pub(super) answered: Arc<Answered>,
}

/// One admitted call.
pub(crate) struct Call {
    pub(super) state: Arc<State>,
    pub(super) caller: Caller,
    rule: RpcRule,
    load: Arc<Load>,
    answered: Arc<Answered>,
}

impl Call {
    /// The engine.
    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.state.engine
    }

    /// What the call holds of the room, for whoever goes on with what it brought after it was given up.
    pub(super) fn load(&self) -> Arc<Load> {
        Arc::clone(&self.load)
    }

    /// The answer has this memory until it is sent.
    pub(super) fn answer_holds(&self, reserved: Arc<Reservation>) {
        self.answered.holds(reserved);
    }

    /// The lease that a token proves, if the caller may serve its queue.
    pub(super) async fn task(&self, token: &str) -> Result<Task, RpcFault> {
        let read = match self.state.tokens.read(&*self.engine().signing_ring().await?, token) {
            // Another server may have made its key.
            Err(BadToken::UnknownKey) => self.state.tokens.read(&*self.engine().fresh_signing_ring().await?, token),
            read => read,
        };
        let task = read?;
        self.answered.is_about(of_execution(task.fence.execution));
        if task.account.is_some_and(|account| account != account_tag(&self.caller.account)) {
            return Err(BadToken::OtherAccount.into());
        }
        self.may_serve(&task.queue)?;
        Ok(task)
    }

    /// The caller as a worker.
    pub(super) fn holder(&self, worker: WorkerId) -> Holder {
        Holder { worker, caller: Some(self.caller.clone()) }
    }

    /// The call is about this: the trail says so where it is refused.
    pub(super) fn is_about(&self, subject: Subject) {
        self.answered.is_about(subject);
    }

    /// Applies the rule of a call whose handler does that itself ([`RpcRule::checked_by_handler`]).
    pub(super) fn permit(&self) -> Result<(), RpcFault> {
        Ok(self.caller.may(self.rule.action).map(drop)?)
    }

    /// Counts a stream of the caller until it is dropped; refuses one where they have as many as they may.
    pub(super) fn open_stream(&self) -> Result<OpenStream, RpcFault> {
        self.state.open_stream(&self.caller.email).ok_or_else(|| Fault::too_many_streams().into())
    }

    /// What a stream ends with that met a fault. A refusal is kept in the trail first.
    pub(super) async fn ended(&self, fault: RpcFault) -> ConnectError {
        let subject = self.answered.subject();
        refusal::noted(&self.state, &self.caller, &self.rule, fault, &subject).await.into_status(&self.caller.request_id)
    }

    /// What an item of a batch ends with that met a fault. A refusal is kept in the trail first, one of each code.
    pub(super) async fn item_ended(&self, refusals: &ItemRefusals, fault: RpcFault, subject: &Subject) -> ConnectError {
        refusals.noted(&self.state, &self.caller, &self.rule, fault, subject).await.into_status(&self.caller.request_id)
    }

    /// Refuses a key that is limited to other queues.
    pub(super) fn may_serve(&self, queue: &Name) -> Result<(), RpcFault> {
        if self.caller.may_serve(queue) { Ok(()) } else { Err(RpcFault::OtherQueue(queue.to_string())) }
    }
}

/// A call about an execution.
pub(super) fn of_execution(id: ExecutionId) -> Subject {
    Subject { target: Some(id.to_string()), ..Subject::default() }
}

/// The services.
pub(crate) struct Rpc {
    state: Arc<State>,
}

impl Rpc {
    /// Over this state.
    pub(super) const fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    /// Answers a call that changes something: on a task of its own, so that a client that goes away does not leave it half done.
    pub(super) async fn change<Q, M, F>(&self, context: RequestContext, request: Q, handler: impl FnOnce(Call, Q) -> F) -> ServiceResult<M>
    where
        F: Future<Output = Result<M, RpcFault>> + Send + 'static,
        M: Send + 'static,
    {
        let admitted = admitted(&context)?;
        // Handlers are large: one that is moved into its task is copied, and not only once.
        let (answering, load) = (Box::pin(handler(self.call(&admitted), request)), Arc::clone(&admitted.load));
        let answered = tokio::spawn(async move {
            let answered = answering.await;
            drop(load);
            answered
        });
        let answered = answered.await.unwrap_or_else(|_| Err(Fault::Panicked.into()));
        self.told(&admitted, answered).await.map(Response::new)
    }

    /// Answers a call that leaves nothing half done when its client goes away.
    pub(super) async fn read<Q, M, F>(&self, context: RequestContext, request: Q, handler: impl FnOnce(Call, Q) -> F) -> ServiceResult<M>
    where
        F: Future<Output = Result<M, RpcFault>>,
    {
        let admitted = admitted(&context)?;
        let answered = handler(self.call(&admitted), request).await;
        self.told(&admitted, answered).await.map(Response::new)
    }

    /// Answers a call with a stream.
    pub(super) async fn stream<Q, M, F>(
        &self,
        context: RequestContext,
        request: Q,
        handler: impl FnOnce(Call, Q) -> F,
    ) -> ServiceResult<ServiceStream<M>>
    where
        F: Future<Output = Result<ServiceStream<M>, RpcFault>>,
    {
        self.read(context, request, handler).await
    }

    fn call(&self, admitted: &Admitted) -> Call {
        Call {
            state: Arc::clone(&self.state),
            caller: admitted.caller.clone(),
            rule: admitted.rule,
            load: Arc::clone(&admitted.load),
            answered: Arc::clone(&admitted.answered),
        }
    }

    /// What the client is told, once a refusal was kept.
    async fn told<M>(&self, admitted: &Admitted, answered: Result<M, RpcFault>) -> Result<M, ConnectError> {
        let fault = match answered {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        let fault = refusal::noted(&self.state, &admitted.caller, &admitted.rule, fault, &admitted.answered.subject()).await;
        let status = fault.into_status(&admitted.caller.request_id);
        admitted.answered.failed(status.http_status());
        Err(status)
    }
}

fn admitted(context: &RequestContext) -> Result<Admitted, ConnectError> {
    context.extensions().get::<Admitted>().cloned().ok_or_else(|| ConnectError::unauthenticated("no API key was sent"))
}
