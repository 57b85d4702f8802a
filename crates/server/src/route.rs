//! The one way to add a route. [`Routes`] takes a path only together with the rule that says who may call it and the operation that
//! documents it; the router below is private to this file, so that a route without a rule does not compile.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use runvoy_model::role::Action;

use crate::app::State;
use crate::call::Call;
use crate::entry::Entry;
use crate::fault::Fault;
use crate::operation::Operation;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Anyone.
    Anyone,
    /// Whoever's role allows the action.
    Key(Action),
    /// The same, or whoever shows a ticket for this very execution.
    KeyOrTicket(Action),
    /// The same, or whoever has a signed link to this very execution's log.
    KeyOrLink(Action),
    /// The same as [`Rule::Key`], and only over the local socket as the server's own user.
    Owner(Action),
    /// The same as [`Rule::Key`], unless configuration opens the metrics to anyone.
    KeyUnlessPublic(Action),
}

impl Rule {
    /// The action that the caller's role must allow.
    pub const fn action(self) -> Action {
        match self {
            Self::Anyone => Action::Public,
            Self::Key(action)
            | Self::KeyOrTicket(action)
            | Self::KeyOrLink(action)
            | Self::Owner(action)
            | Self::KeyUnlessPublic(action) => action,
        }
    }
}

/// A route as the table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// The method.
    pub method: Method,
    /// The path with its parameters in braces.
    pub path: &'static str,
    /// Who may call it.
    pub rule: Rule,
}

pub(crate) type Answering = BoxFuture<'static, Result<Response<Body>, Fault>>;

/// One method of one path.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) rule: Rule,
    pub(crate) operation: Operation,
    pub(crate) handler: Box<dyn Fn(Call) -> Answering + Send + Sync>,
}

/// The routes, before they become a router.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) routes: Vec<Route>,
}

impl Routes {
    /// Adds a `GET`.
    pub(crate) fn get<H, F>(&mut self, path: &'static str, rule: Rule, operation: Operation, handler: H)
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        self.add(Method::GET, path, rule, operation, handler);
    }

    /// Adds a `POST`.
    pub(crate) fn post<H, F>(&mut self, path: &'static str, rule: Rule, operation: Operation, handler: H)
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        self.add(Method::POST, path, rule, operation, handler);
    }

    /// Adds a `PUT`.
    pub(crate) fn put<H, F>(&mut self, path: &'static str, rule: Rule, operation: Operation, handler: H)
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        self.add(Method::PUT, path, rule, operation, handler);
    }

    /// Adds a `DELETE`.
    pub(crate) fn delete<H, F>(&mut self, path: &'static str, rule: Rule, operation: Operation, handler: H)
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        self.add(Method::DELETE, path, rule, operation, handler);
    }

    fn add<H, F>(&mut self, method: Method, path: &'static str, rule: Rule, operation: Operation, handler: H)
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Fault>> + Send + 'static,
    {
        let handler = Box::new(move |call| -> Answering { Box::pin(handler(call)) });
        self.routes.push(Route { method, path, rule, operation, handler });
    }

    /// Every route with its rule.
    pub(crate) fn table(&self) -> Vec<TableRow> {
        self.routes.iter().map(|route| TableRow { method: route.method.clone(), path: route.path, rule: route.rule }).collect()
    }

    /// The router. A path also answers with a slash at its end, except where the rest of the path is a parameter.
    pub(crate) fn into_router(self, state: &Arc<State>) -> axum::Router {
        let mut entries: Vec<(&'static str, Vec<Route>)> = Vec::new();
        for route in self.routes {
            match entries.iter_mut().find(|(path, _)| *path == route.path) {
                Some((_, routes)) => routes.push(route),
                None => entries.push((route.path, vec![route])),
            }
        }
        let mut router = axum::Router::new();
        for (path, routes) in entries {
            let entry = Served(Arc::new(Entry::new(path, routes, Arc::clone(state))));
            if path != "/" && !path.ends_with('}') {
                router = router.route_service(&format!("{path}/"), entry.clone());
            }
            router = router.route_service(path, entry);
        }
        router.fallback_service(Served(Arc::new(Entry::unknown(Arc::clone(state)))))
    }
}

/// An entry as a service.
#[derive(Clone)]
struct Served(Arc<Entry>);

impl tower::Service<Request<Body>> for Served {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let entry = Arc::clone(&self.0);
        Box::pin(async move { Ok(entry.serve(request).await) })
    }
}
