//! Scripts for shells.

use crate::place::Place;

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    // Settings that cannot be read do not matter: the script is the same everywhere.
    let place = Place::new();
    place.write("tenure.toml", "nonsense");
    for (shell, part) in [
        ("bash", "complete -F _tenure"),
        ("zsh", "#compdef tenure"),
        ("fish", "complete -c tenure"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ran = place.run(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for part in [part, "enqueue", "completions", "data-dir"] {
            assert!(ran.out.contains(part), "{shell}: {part}");
        }
        assert_eq!(place.json(&["completions", shell])["shell"], shell);
    }
}

#[test]
fn bash_accepts_its_script() {
    let place = Place::new();
    let script = place.run(&["completions", "bash"]).out;
    let path = place.write("tenure.bash", script);
    let status = std::process::Command::new("bash").arg("-n").arg(path).status().unwrap();
    assert!(status.success());
}
