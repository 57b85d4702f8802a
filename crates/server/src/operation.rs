//! What a route promises, beside its handler in the table: parameters, body, answers, refusals. The OpenAPI document is built from these
//! and from nothing else.

use runvoy_model::name::NAME_PATTERN;
use runvoy_wire::Code;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::pager::{self, MOST_LISTED};

/// An e-mail address as this server accepts it.
pub(crate) const EMAIL_PATTERN: &str = concat!(
    r"^(?=[^@]{1,64}@)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*",
    r"@[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
);
/// The description of the parameter `cursor`.
pub(crate) const ABOUT_CURSOR: &str = "The X-Next-Cursor of the page before";
/// The description of the header `X-Next-Cursor`.
pub(crate) const ABOUT_NEXT_CURSOR: &str = "The cursor of the next page; absent on the last page";

type Named = Vec<(String, RefOr<Schema>)>;

/// A schema and the named ones it refers to.
pub(crate) struct Shape {
    pub(crate) schema: RefOr<Schema>,
    pub(crate) named: Named,
}

/// A parameter.
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) place: ParameterIn,
    pub(crate) schema: RefOr<Schema>,
    pub(crate) required: bool,
    pub(crate) description: &'static str,
}

/// An answer that is not an error.
pub(crate) struct Promise {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) shape: Option<Shape>,
}

/// What a route promises.
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// What happens and what to know before calling it; who may is added to it.
    pub(crate) about: &'static str,
    /// An address of the web page, which the document leaves out.
    pub(crate) is_page: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Option<Shape>,
    pub(crate) body_required: bool,
    pub(crate) promises: Vec<Promise>,
    pub(crate) refusals: Vec<Code>,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
}

impl Operation {
    /// An operation with this id and summary.
    pub(crate) const fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            about: "",
            is_page: false,
            params: Vec::new(),
            body: None,
            body_required: false,
            promises: Vec::new(),
            refusals: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// With a description.
    pub(crate) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// As an address of the web page.
    pub(crate) const fn page(mut self) -> Self {
        self.is_page = true;
        self
    }

    /// With a parameter of the path.
    pub(crate) fn path(self, name: &'static str, schema: RefOr<Schema>, description: &'static str) -> Self {
        self.param(Param { name, place: ParameterIn::Path, schema, required: true, description })
    }

    /// With the execution's id in the path, and the errors that belong to it.
    pub(crate) fn execution_id(self) -> Self {
        self.path("id", part_of_id(), "The execution's id, or six or more digits that begin or end it and no other id").refuses(&[
            Code::NotFound,
            Code::Conflict,
            Code::InvalidRequest,
        ])
    }

    /// With a parameter of the query that may be absent.
    pub(crate) fn query(self, name: &'static str, schema: RefOr<Schema>, description: &'static str) -> Self {
        self.param(Param { name, place: ParameterIn::Query, schema, required: false, description }).refuses(&[Code::InvalidRequest])
    }

    /// With a parameter of the query that must be there.
    pub(crate) fn required_query(self, name: &'static str, schema: RefOr<Schema>, description: &'static str) -> Self {
        self.param(Param { name, place: ParameterIn::Query, schema, required: true, description }).refuses(&[Code::InvalidRequest])
    }

    /// In pages where they are asked for, as [`crate::pager::Pager`] cuts them.
    pub(crate) fn paged(self) -> Self {
        self.query("limit", number(1, Some(MOST_LISTED)), "The maximum number of items; default: all")
            .query("cursor", pattern(pager::CURSOR_PATTERN), ABOUT_CURSOR)
            .header("X-Next-Cursor", ABOUT_NEXT_CURSOR)
    }

    /// With the client's own key for the request.
    pub(crate) fn idempotent(self) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(255)).pattern(Some("^[!-~]+$"));
        let description =
            "A unique key of your choice: a repeat within 24 hours with the same body creates nothing new and gets the same response";
        let schema = schema.into();
        self.param(Param { name: "Idempotency-Key", place: ParameterIn::Header, schema, required: false, description })
            .refuses(&[Code::InvalidRequest, Code::Conflict])
    }

    fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// With a JSON body.
    pub(crate) fn takes<T: ToSchema>(mut self, required: bool) -> Self {
        self.body = Some(shape::<T>());
        self.body_required = required;
        self.refuses(&[Code::InvalidRequest, Code::PayloadTooLarge])
    }

    /// With a required JSON body that is described like `T`, under a name of its own, and refuses
    /// fields that it does not know.
    pub(crate) fn takes_strictly<T: ToSchema>(self, name: &'static str) -> Self {
        let mut operation = self.takes::<T>(true);
        if let Some(body) = &mut operation.body {
            let mut strict = <T as PartialSchema>::schema();
            if let RefOr::T(Schema::Object(object)) = &mut strict {
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            }
            body.named.retain(|(known, _)| *known != T::name());
            body.named.push((name.to_owned(), strict));
            body.schema = Ref::from_schema_name(name).into();
        }
        operation
    }

    /// Answers with JSON.
    pub(crate) fn gives<T: ToSchema>(mut self, status: u16, description: &'static str) -> Self {
        self.promises.push(Promise { status, description, content_type: "application/json", shape: Some(shape::<T>()) });
        self
    }

    /// Answers with a JSON array.
    pub(crate) fn gives_array<T: ToSchema>(mut self, status: u16, description: &'static str) -> Self {
        let Shape { schema, named } = shape::<T>();
        let schema = ArrayBuilder::new().items(schema).into();
        self.promises.push(Promise { status, description, content_type: "application/json", shape: Some(Shape { schema, named }) });
        self
    }

    /// Answers with something that has no schema.
    pub(crate) fn gives_type(mut self, status: u16, content_type: &'static str, description: &'static str) -> Self {
        self.promises.push(Promise { status, description, content_type, shape: None });
        self
    }

    /// Answers without a body.
    pub(crate) fn gives_nothing(self, status: u16, description: &'static str) -> Self {
        self.gives_type(status, "", description)
    }

    /// Its good answers carry this header.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description));
        self
    }

    /// May refuse with these codes, beside those of every route.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend(codes.iter().filter(|code| !self.refusals.contains(code)).copied().collect::<Vec<_>>());
        self
    }
}

/// The schema of a type, by its name.
pub(crate) fn shape<T: ToSchema>() -> Shape {
    let mut named = vec![(T::name().into_owned(), <T as PartialSchema>::schema())];
    T::schemas(&mut named);
    Shape { schema: Ref::from_schema_name(T::name()).into(), named }
}

/// Any text but an empty one.
pub(crate) fn text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).into()
}

/// Any text.
pub(crate) fn text_or_empty() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).into()
}

/// Text that matches a regular expression.
pub(crate) fn pattern(pattern: impl Into<String>) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
}

/// A [`runvoy_model::name::Name`].
pub(crate) fn name() -> RefOr<Schema> {
    pattern(format!("^{NAME_PATTERN}$"))
}

/// An id in full, or a part of one.
pub(crate) fn part_of_id() -> RefOr<Schema> {
    pattern("^[0-9a-fA-F]{6,32}$")
}

/// An id in full.
pub(crate) fn id() -> RefOr<Schema> {
    pattern("^[0-9a-f]{32}$")
}

/// A place in the log of events.
pub(crate) fn place() -> RefOr<Schema> {
    pattern("^[0-9]{1,19}$")
}

/// Some of these words, with commas between them.
pub(crate) fn list_of(words: &[&str]) -> RefOr<Schema> {
    let any = words.join("|");
    pattern(format!("^({any})(,({any}))*$"))
}

/// The same, or nothing.
pub(crate) fn list_or_empty(words: &[&str]) -> RefOr<Schema> {
    let any = words.join("|");
    pattern(format!("^(({any})(,({any}))*)?$"))
}

/// One of these words.
pub(crate) fn words(words: &[&str]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied())).into()
}

/// An RFC 3339 time.
pub(crate) fn time() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).into()
}

/// A whole number from `least` to `most`, or to the largest that there is.
pub(crate) fn number(least: u64, most: Option<u64>) -> RefOr<Schema> {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least));
    schema.maximum(Some(most.unwrap_or(u64::MAX))).into()
}

/// A whole number from `least` on, or nothing.
pub(crate) fn number_or_empty(least: u64) -> RefOr<Schema> {
    let empty = ObjectBuilder::new().schema_type(Type::String).max_length(Some(0));
    OneOfBuilder::new().item(number(least, None)).item(empty).into()
}

/// True or false.
pub(crate) fn flag() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).into()
}
