//! The filters of texts, templates and expressions, each with what bounds its result. Those of minijinja allocate whatever they are asked
//! for, so the result is estimated before they run.

use crate::message::message::Message;
use crate::message::msg;

use minijinja::functions::Function;
use minijinja::value::{FunctionArgs, FunctionResult, Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters as builtin};
use minijinja_contrib::filters as contrib;

use crate::template::error::error_with_message;
use crate::template::exact_number::{for_filter, to_json};
use crate::template::memory::{MAX_NODES, Size, count, evaluated, limit_error, size};
use crate::template::missing::is_unknown;
use crate::template::names::MAX_VALUE_BYTES;

/// The maximum number of lists that `slice` returns, and of items in one list of `batch`.
const MAX_GROUPS: usize = 100_000;

/// The maximum work of a filter that looks for its arguments in each item, in bytes.
const MAX_WORK: usize = 1 << 28;

/// What bounds the result of a filter. Each operand is bounded as well: as text, it is at most [`MAX_VALUE_BYTES`] long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// It consists of parts of its operands, or is a number or a boolean.
    Parts,
    /// As [`Parts`](Self::Parts), and the operands of a list of operands have at most [`MAX_NODES`] items together.
    Lists,
    /// It is new text, at most a few times as long as its operands.
    Texts,
    /// The lines times the width.
    Indent,
    /// The places of the format with their widths and values.
    Format,
    /// The occurrences times the replacement.
    Replace,
    /// The items times the separator.
    Join,
    /// The separators: there is one part more.
    Split,
    /// The number of lists or items that is asked for.
    Groups,
    /// The values times their depth times the indentation, which is this by default.
    Json(usize),
}

struct Filter {
    name: &'static str,
    bound: Bound,
    function: Value,
}

/// All filters.
fn all() -> Vec<Filter> {
    use Bound::{Format, Groups, Indent, Join, Json, Lists, Parts, Replace, Split, Texts};
    vec![
        filter("abs", Parts, builtin::abs),
        filter("attr", Parts, builtin::attr),
        filter("batch", Groups, builtin::batch),
        filter("bool", Parts, builtin::bool),
        filter("capitalize", Texts, builtin::capitalize),
        filter("chain", Lists, builtin::chain),
        filter("count", Parts, builtin::length),
        filter("d", Parts, default),
        filter("default", Parts, default),
        filter("dictsort", Parts, builtin::dictsort),
        filter("e", Texts, builtin::escape),
        filter("escape", Texts, builtin::escape),
        filter("filesizeformat", Texts, contrib::filesizeformat),
        filter("first", Parts, builtin::first),
        filter("float", Parts, builtin::float),
        filter("format", Format, builtin::format),
        filter("groupby", Parts, builtin::groupby),
        filter("indent", Indent, builtin::indent),
        filter("int", Parts, builtin::int),
        filter("items", Parts, builtin::items),
        filter("join", Join, builtin::join),
        filter("last", Parts, builtin::last),
        filter("length", Parts, builtin::length),
        filter("lines", Split, builtin::lines),
        filter("list", Parts, builtin::list),
        filter("lower", Texts, builtin::lower),
        // A filter that it applies to the items counts its own results.
        filter("map", Parts, builtin::map),
        filter("max", Parts, builtin::max),
        filter("min", Parts, builtin::min),
        filter("pluralize", Parts, contrib::pluralize),
        filter("pprint", Json(4), builtin::pprint),
        filter("reject", Parts, builtin::reject),
        filter("rejectattr", Parts, builtin::rejectattr),
        filter("replace", Replace, builtin::replace),
        filter("reverse", Texts, builtin::reverse),
        filter("round", Parts, builtin::round),
        filter("safe", Texts, builtin::safe),
        filter("select", Parts, builtin::select),
        filter("selectattr", Parts, builtin::selectattr),
        filter("slice", Groups, builtin::slice),
        filter("sort", Parts, builtin::sort),
        filter("split", Split, builtin::split),
        filter("string", Texts, builtin::string),
        filter("striptags", Texts, contrib::striptags),
        filter("sum", Parts, sum),
        filter("title", Texts, builtin::title),
        filter("tojson", Json(0), to_json),
        filter("trim", Texts, builtin::trim),
        filter("truncate", Texts, contrib::truncate),
        filter("unique", Parts, builtin::unique),
        filter("upper", Texts, builtin::upper),
        filter("zip", Lists, builtin::zip),
    ]
}

fn filter<F, Rv, Args>(name: &'static str, bound: Bound, function: F) -> Filter
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    Filter { name, bound, function: Value::from_function(function) }
}

/// Adds all filters to an environment that has none.
pub(crate) fn add_filters(environment: &mut Environment<'static>) {
    for Filter { name, bound, function } in all() {
        environment.add_filter(name, move |state: &mut State<'_, '_>, operands: Rest<ValueOrKwargs>| {
            let mut operands = operands.into_values();
            for_filter(name, &mut operands);
            let fits = bound.estimate(&operands).and_then(|estimate| check(bound, estimate));
            fits.map_err(limit_error)?;
            let result = evaluated(function.call(state, &operands)?)?;
            count(state, &result, !matches!(bound, Bound::Parts | Bound::Lists))?;
            Ok::<_, Error>(result)
        });
    }
}

fn check(bound: Bound, estimate: usize) -> Result<(), Message> {
    match bound {
        Bound::Split | Bound::Lists if estimate > MAX_NODES => {
            Err(msg!("the result would have more than {MAX_NODES} items"))
        }
        Bound::Groups if estimate > MAX_GROUPS => Err(msg!("`batch` and `slice` take at most {MAX_GROUPS}")),
        Bound::Split | Bound::Lists | Bound::Groups => Ok(()),
        _ if estimate > MAX_VALUE_BYTES => Err(msg!("the result would be longer than {MAX_VALUE_BYTES} bytes")),
        _ => Ok(()),
    }
}

impl Bound {
    /// The maximum length of the result in bytes; for [`Split`](Self::Split) and [`Lists`](Self::Lists) the number of its items, for
    /// [`Groups`](Self::Groups) the number that is asked for.
    /// Errors: An operand is too large.
    fn estimate(self, operands: &[Value]) -> Result<usize, Message> {
        let Some((value, arguments)) = operands.split_first() else { return Ok(0) };
        if self == Self::Parts {
            let items = if value.as_str().is_some() { 1 } else { value.len().unwrap_or(1) };
            let arguments = arguments.iter().map(size).collect::<Result<Vec<_>, _>>()?;
            let arguments = arguments.iter().fold(0, |sum: usize, size| sum.saturating_add(size.text));
            return match items.checked_mul(arguments).is_some_and(|work| work <= MAX_WORK) {
                true => Ok(0),
                false => Err(msg!("this takes too long: {items} items with arguments of {arguments} bytes")),
            };
        }
        if self == Self::Lists {
            return Ok(operands.iter().map(|list| list.len().unwrap_or(0)).fold(0, usize::saturating_add));
        }
        let whole = text_size(value)?;
        let others = arguments.iter().map(text_size).collect::<Result<Vec<_>, _>>()?;
        let sum = others.iter().fold(whole.text, |sum, size| sum.saturating_add(size.text));
        let text = value.as_str().unwrap_or_default();
        let first = arguments.first().and_then(Value::as_str);
        Ok(match self {
            Self::Parts | Self::Lists => 0,
            Self::Texts => others.iter().map(|size| size.text).fold(whole.text, usize::max),
            Self::Indent => {
                let width = number(arguments, 0, "width", 4);
                let lines = text.matches('\n').count() + 1;
                text.len().saturating_add(lines.saturating_mul(width))
            }
            Self::Format => {
                let places = text.matches('%').count();
                // A value can be used by name in every place.
                let values = match text.contains("%(") {
                    true => places.saturating_mul(others.iter().map(|size| size.text).max().unwrap_or(0)),
                    false => sum.saturating_sub(whole.text),
                };
                let stars = arguments.iter().filter_map(Value::as_usize).fold(0, usize::saturating_add);
                let widths = widths(text).saturating_add(if text.contains('*') { stars } else { 0 });
                text.len().saturating_add(widths).saturating_add(values)
            }
            Self::Replace => {
                let owned = (value.as_str().is_none()).then(|| value.to_string());
                let text = owned.as_deref().unwrap_or(text);
                let from = first.map_or_else(|| arguments.first().map(Value::to_string), |from| Some(from.to_owned()));
                let found = from.map_or(0, |from| text.matches(from.as_str()).count());
                text.len().saturating_add(found.saturating_mul(others.get(1).map_or(0, |size| size.text)))
            }
            Self::Join => {
                let separator = others.iter().map(|size| size.text).max().unwrap_or(0);
                whole.text.saturating_add(whole.nodes.saturating_mul(separator))
            }
            Self::Split => match first {
                Some("") => text.chars().count() + 2,
                Some(separator) => text.matches(separator).count() + 1,
                None => text.len() / 2 + 1,
            },
            Self::Groups => number(arguments, 0, "count", 0),
            Self::Json(default) => {
                let indent = number(arguments, 0, "indent", default);
                whole.text.saturating_add(whole.nodes.saturating_mul(whole.depth).saturating_mul(indent))
            }
        })
    }
}

/// The size of an operand as text.
/// Errors: It is longer than [`MAX_VALUE_BYTES`], or has too many items.
fn text_size(value: &Value) -> Result<Size, Message> {
    let size = size(value)?;
    if size.text > MAX_VALUE_BYTES {
        return Err(msg!("an operand is longer than {MAX_VALUE_BYTES} bytes as text"));
    }
    Ok(size)
}

/// The number at a position of the arguments or under its name.
fn number(arguments: &[Value], position: usize, name: &str, default: usize) -> usize {
    let named = || arguments.last().filter(|last| last.is_kwargs()).and_then(|last| last.get_attr(name).ok());
    let found = arguments.get(position).filter(|value| !value.is_kwargs()).cloned().or_else(named);
    match found {
        // A negative number is rejected by the filter.
        Some(value) if value.is_integer() => {
            value.as_usize().unwrap_or(usize::from(value > Value::from(0)) * usize::MAX)
        }
        _ => default,
    }
}

/// The sum of the numbers in a format, which are widths and precisions.
fn widths(format: &str) -> usize {
    let digits = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    digits.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add)
}

/// `default`, which also replaces null: a variable that is declared but was never set is null, and
/// `{{ 用户名 | default('朋友') }}` must apply to it.
fn default(value: &Value, arguments: Rest<Value>) -> Result<Value, Error> {
    if arguments.len() > 2 {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let replace_falsy = arguments.get(1).is_some_and(Value::is_true);
    if value.is_undefined() || value.is_none() || is_unknown(value) || (replace_falsy && !value.is_true()) {
        return Ok(arguments.first().cloned().unwrap_or_else(|| Value::from("")));
    }
    Ok(value.clone())
}

/// Like `sum` of minijinja, but lists are added without nesting, and texts are not added.
fn sum(
    state: &mut State<'_, '_>,
    values: Value,
    attribute: Option<String>,
    start: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let attribute = attribute.map_or_else(|| named.get::<Option<String>>("attribute"), |name| Ok(Some(name)))?;
    let start = start.map_or_else(|| named.get::<Option<Value>>("start"), |start| Ok(Some(start)))?;
    named.assert_all_used()?;
    let Some(lists) = start.as_ref().filter(|start| !start.is_number()) else {
        let no_more = std::iter::empty::<(&str, Value)>().collect();
        return builtin::sum(state, values, attribute.as_deref(), start, no_more);
    };
    if !matches!(lists.kind(), ValueKind::Seq | ValueKind::Iterable) {
        let message = msg!("`sum` adds numbers or lists; use `join` for texts");
        return Err(error_with_message(ErrorKind::InvalidOperation, message));
    }
    let values = match attribute {
        Some(name) => {
            let named: Kwargs = [("attribute", Value::from(name))].into_iter().collect();
            state.apply_filter("map", &[values, Value::from(named)])?
        }
        None => values,
    };
    let mut items: Vec<Value> = lists.try_iter()?.collect();
    for list in values.try_iter()? {
        for item in list.try_iter()? {
            if items.len() == MAX_NODES {
                return Err(limit_error(msg!("the result would have more than {MAX_NODES} items")));
            }
            items.push(item);
        }
    }
    Ok(Value::from(items))
}

#[cfg(test)]
mod tests;
