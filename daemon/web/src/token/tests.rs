//! Tokens are made, found, revoked, and end.

use jiff::SignedDuration;

use super::*;

fn now() -> Timestamp {
    "2026-11-20T20:00:00Z".parse().expect("an instant")
}

#[test]
fn a_token_is_found_until_it_is_revoked_and_is_kept_as_a_hash_alone() {
    let state = tempfile::tempdir().expect("a folder");
    let tokens = TokenFile::in_state(state.path());
    let new = tokens.create("ci", Role::Operator, None, now());
    let new = new.expect("room");
    let found = tokens.find(new.secret(), now()).expect("a file");
    assert_eq!(
        found.map(|token| (token.name, token.role)),
        Some(("ci".to_owned(), Role::Operator))
    );
    let file = state.path().join("lab/tokens.json");
    let text = std::fs::read_to_string(file).expect("it is there");
    assert!(!text.contains(new.secret()), "{text}");
    assert!(!format!("{new:?}").contains(new.secret()));
    for wrong in [
        "",
        "layerlab_",
        &new.secret()[1..],
        &format!("{} ", new.secret()),
    ] {
        assert_eq!(tokens.find(wrong, now()).expect("a file"), None, "{wrong}");
    }
    // A hash is no token.
    let hash = &tokens.list().expect("a file")[0].sha256;
    assert_eq!(tokens.find(hash, now()).expect("a file"), None);
    tokens.revoke("ci", now()).expect("it is there");
    assert_eq!(tokens.find(new.secret(), now()).expect("a file"), None);
    let again = tokens.revoke("ci", now()).expect_err("it is revoked");
    assert!(matches!(again, TokenError::Unknown(_)), "{again}");
    let newer = tokens
        .create("ci", Role::Viewer, None, now())
        .expect("free");
    assert!(
        tokens
            .find(newer.secret(), now())
            .expect("a file")
            .is_some()
    );
    assert_eq!(tokens.find(new.secret(), now()).expect("a file"), None);
}

#[test]
fn a_token_ends_by_itself() {
    let state = tempfile::tempdir().expect("a folder");
    let tokens = TokenFile::in_state(state.path());
    let end = now() + SignedDuration::from_hours(1);
    let new = tokens.create("guest", Role::Viewer, Some(end), now());
    let new = new.expect("room");
    let before = end - SignedDuration::from_secs(1);
    assert!(tokens.find(new.secret(), before).expect("a file").is_some());
    assert_eq!(tokens.find(new.secret(), end).expect("a file"), None);
    let over = tokens.create("late", Role::Viewer, Some(now()), now());
    assert!(matches!(over, Err(TokenError::Over)), "{over:?}");
}

#[test]
fn names_are_taken_once_and_can_be_shown() {
    let state = tempfile::tempdir().expect("a folder");
    let tokens = TokenFile::in_state(state.path());
    let create = |name: &str| tokens.create(name, Role::Viewer, None, now());
    create("anna@desk-2").expect("a name");
    let taken = create("anna@desk-2").expect_err("it is taken");
    assert!(matches!(taken, TokenError::Taken(_)), "{taken}");
    for bad in ["", "a b", "../x", "<script>", &"x".repeat(65)] {
        let error = create(bad).expect_err("no name");
        assert!(matches!(error, TokenError::Name(_)), "{error}");
    }
}
