//! A type becomes its `impl Job`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Field, Ident, parse_quote};

use crate::mistakes::Mistakes;
use crate::pairs;
use crate::said::Said;

/// The implementation, beside an error for each mistake.
///
/// There is an implementation even then: without one every use of the type would be an error too, and hide the cause.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut mistakes = Mistakes::default();
    let said = Said::new(&pairs::read(&input.attrs, &mut mistakes), &mut mistakes);
    if !said.has_kind {
        mistakes.at(&input.ident, missing_kind(&input.ident));
    }
    let can_be_one = check_type(&input, &mut mistakes);
    let implementation = if can_be_one { implement(&input.ident, &said) } else { TokenStream::new() };
    let mistakes = mistakes.into_tokens();
    quote! { #mistakes #implementation }
}

fn implement(name: &Ident, said: &Said) -> TokenStream {
    let krate = said.krate.clone().unwrap_or_else(|| parse_quote!(::tenure));
    let kind = said.kind.as_ref().map_or_else(|| quote!(""), |kind| quote!(#kind));
    let queue = said.queue.iter().map(|queue| quote!(.queue(#queue)));
    let priority = said.priority.iter().map(|constant| quote!(.priority(#krate::Priority::#constant)));
    let max_attempts = said.max_attempts.iter().map(|max| quote!(.max_attempts(#max)));
    let max_losses = said.max_losses.iter().map(|max| quote!(.max_losses(#max)));
    let backoff = said.backoff.iter().map(|policy| quote!(.backoff(#policy)));
    let timeout = said.timeout.iter().map(|timeout| {
        let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        quote!(.timeout(::core::time::Duration::from_millis(#ms)))
    });
    quote! {
        #[automatically_derived]
        impl #krate::Job for #name {
            const KIND: &'static str = #kind;
            const DEFAULTS: #krate::Defaults =
                #krate::Defaults::new()#(#queue)*#(#priority)*#(#max_attempts)*#(#max_losses)*#(#backoff)*#(#timeout)*;
        }
    }
}

/// Whether this can be a job at all.
fn check_type(input: &DeriveInput, mistakes: &mut Mistakes) -> bool {
    let parts: Vec<(&[Attribute], Vec<&Field>)> = match &input.data {
        Data::Struct(data) => vec![(&[], data.fields.iter().collect())],
        Data::Enum(data) => data.variants.iter().map(|v| (v.attrs.as_slice(), v.fields.iter().collect())).collect(),
        Data::Union(data) => {
            mistakes.at(data.union_token, "a union cannot be a job: use a struct or an enum, which serde can write");
            return false;
        }
    };
    let inside = parts
        .iter()
        .flat_map(|(own, fields)| own.iter().chain(fields.iter().flat_map(|field| &field.attrs)).collect::<Vec<_>>());
    for attribute in inside.filter(|attribute| attribute.path().is_ident("job")) {
        mistakes.at(attribute, "`#[job(…)]` speaks of the whole type: put it above the type");
    }
    if !input.generics.params.is_empty() {
        let message = "a job has no generic parameters: its kind names one type whose values are stored; \
                       own the data (`String`, not `&str`), and derive `Job` on one struct for each kind";
        mistakes.at(&input.generics, message);
        return false;
    }
    true
}

fn missing_kind(name: &Ident) -> String {
    let kind = snake_case(&name.to_string());
    format!("a job needs a kind, the stored name that picks its handler: add `#[job(kind = \"{kind}\")]`")
}

/// `SendInvoice` → `send_invoice`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(source: &str) -> String {
        expand(source.parse().expect("Rust tokens")).to_string()
    }

    /// The text of every `compile_error!`.
    fn mistakes(source: &str) -> Vec<String> {
        let expanded = expanded(source);
        let texts = expanded.split("compile_error ! {").skip(1);
        texts.map(|text| text.split(" }").next().unwrap_or_default().trim().replace('\\', "")).collect()
    }

    #[test]
    fn what_is_said_becomes_defaults_and_nothing_else_does() {
        let source = r#"#[job(kind = "a", queue = "q", priority = "low", max_attempts = 3, max_losses = 4)]
                        #[job(backoff = "fixed 5m", timeout = "90s", crate = "jobs::tenure",)] struct A;"#;
        let defaults = "const DEFAULTS : jobs :: tenure :: Defaults = jobs :: tenure :: Defaults :: new () \
                        . queue (\"q\") . priority (jobs :: tenure :: Priority :: LOW) . max_attempts (3) \
                        . max_losses (4) . backoff (\"fixed 5m\") \
                        . timeout (:: core :: time :: Duration :: from_millis (90000u64)) ;";
        assert!(expanded(source).contains(defaults), "{}", expanded(source));
        let plain = expanded("#[job(kind = \"a\")] struct A;");
        assert!(plain.contains("impl :: tenure :: Job for A"), "{plain}");
        assert!(plain.contains(":: tenure :: Defaults :: new () ;"), "{plain}");
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let source = r#"#[job(kind = "a b", queue, max_attempts = 0, 5, colour = "red", timeout = "soon")] struct A;"#;
        let found = mistakes(source);
        assert_eq!(found.len(), 6, "{found:?}");
        for word in ["kind `a b`", "`queue` needs a value", "max_attempts `0`", "no `key", "colour", "timeout `soon`"] {
            assert!(found.iter().any(|mistake| mistake.contains(word)), "{word}: {found:?}");
        }
    }

    #[test]
    fn limits_are_those_of_core() {
        for good in ["max_attempts = 1000", "max_losses = 1003", "max_attempts = 5u16", r#"backoff = "steps 1s 10s""#] {
            assert_eq!(mistakes(&format!("#[job(kind = \"a\", {good})] struct A;")), [""; 0], "{good}");
        }
        for bad in [
            "max_attempts = 1001",
            "max_attempts = -1",
            "max_attempts = 5i8",
            "max_attempts = \"5\"",
            "max_losses = 1004",
            "max_losses = 99999999999999999999",
            r#"backoff = "fixed 366d""#,
            r#"timeout = "0s""#,
            r#"priority = "urgent""#,
            "priority = 1",
            "queue = QUEUE",
            "queue = ",
            r#"crate = "a b""#,
            r#"kind = "b""#,
            r#"queue = "q" timeout = "5m""#,
            r#"queue = "q",,"#,
        ] {
            assert_eq!(mistakes(&format!("#[job(kind = \"a\", {bad})] struct A;")).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_type_that_cannot_be_a_job_is_told_why_and_gets_no_implementation() {
        for (source, word) in [
            ("#[job(kind = \"a\")] struct A<T> { t: T }", "generic"),
            ("#[job(kind = \"a\")] struct A<'a> { t: &'a str }", "own the data"),
            ("#[job(kind = \"a\")] union A { a: u8 }", "union"),
        ] {
            let found = mistakes(source);
            assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
            assert!(!expanded(source).contains("impl"), "{source}");
        }
    }

    #[test]
    fn an_attribute_inside_of_the_type_is_not_ignored() {
        for source in [
            "#[job(kind = \"a\")] struct A { #[job(queue = \"q\")] b: u8 }",
            "#[job(kind = \"a\")] enum A { #[job(queue = \"q\")] B }",
            "#[job(kind = \"a\")] enum A { B(#[job(queue = \"q\")] u8) }",
        ] {
            assert!(mistakes(source)[0].contains("above the type"), "{source}");
        }
    }

    #[test]
    fn a_missing_kind_is_proposed() {
        for source in
            ["struct SendInvoice;", "#[job()] struct SendInvoice;", "#[job(queue = \"q\")] enum SendInvoice {}"]
        {
            let found = mistakes(source);
            assert!(found.len() == 1 && found[0].contains(r#"kind = "send_invoice""#), "{source}: {found:?}");
        }
        assert_eq!(mistakes("#[job] struct A;").len(), 2);
    }
}
