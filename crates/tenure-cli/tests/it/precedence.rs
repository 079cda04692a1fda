//! Flag > environment > tenure.toml > default, told by `tenure config show`.

use crate::place::Place;

#[test]
fn the_first_source_that_says_anything_wins() {
    let file = "database = \"file.db\"\ntenant = \"from-file\"\n";
    for (args, env, toml, database, from) in [
        (&[][..], &[][..], "", "tenure/tenure.db", "default"),
        (&[], &[], file, "sqlite:file.db", "tenure.toml line 1, database"),
        (&[], &[], "data_dir = \"d\"", "sqlite:d/tenure.db", "tenure.toml line 1, data_dir"),
        (&[], &[], "data_dir = \"d\"\ndatabase = \"x.db\"", "sqlite:x.db", "tenure.toml line 2, database"),
        (&[], &[("TENURE_DATA_DIR", "env")], file, "sqlite:env/tenure.db", "TENURE_DATA_DIR"),
        (&[], &[("DATABASE_URL", "postgres://u:secret@db/app")], file, "postgres://db/app", "DATABASE_URL"),
        (&[], &[("DATABASE_URL", "a.db"), ("TENURE_DATABASE_URL", "b.db")], file, "sqlite:b.db", "TENURE_DATABASE_URL"),
        (&[], &[("DATABASE_URL", "a.db"), ("TENURE_DATA_DIR", "env")], file, "sqlite:a.db", "DATABASE_URL"),
        (&[], &[("DATABASE_URL", ""), ("TENURE_DATA_DIR", "")], file, "sqlite:file.db", "tenure.toml line 1, database"),
        (&["--data-dir=flag"], &[("DATABASE_URL", "a.db")], file, "sqlite:flag/tenure.db", "--data-dir"),
        (&["--database=flag.db"], &[("TENURE_DATABASE_URL", "b.db")], file, "sqlite:flag.db", "--database"),
    ] {
        let place = env.iter().fold(Place::new(), |place, (name, value)| place.with_env(name, *value));
        if !toml.is_empty() {
            place.write("tenure.toml", toml);
        }
        let shown = place.json(&[&["config", "show"], args].concat());
        let setting = &shown["settings"]["database"];
        let value = setting["value"].as_str().unwrap();
        assert!(value.ends_with(database), "{args:?} {env:?} {toml:?}: {value}");
        assert_eq!(setting["from"], from, "{args:?} {env:?} {toml:?}");
    }
}

#[test]
fn a_named_file_replaces_the_one_in_this_directory_and_paths_start_at_it() {
    let place = Place::new().with_env("TENURE_CONFIG", "env/t.toml");
    place.write("tenure.toml", "tenant = \"here\"");
    place.write("env/t.toml", "database = \"jobs.db\"\ntenant = \"env\"");
    place.write("flag/t.toml", "tenant = \"flag\"");
    let shown = place.json(&["config", "show"]);
    assert_eq!(shown["settings"]["tenant"]["value"], "env");
    assert_eq!(
        shown["settings"]["database"]["value"],
        format!("sqlite:{}", std::path::Path::new("env").join("jobs.db").display())
    );
    assert_eq!(place.json(&["config", "show", "--config=flag/t.toml"])["settings"]["tenant"]["value"], "flag");
}

#[test]
fn the_tenant_of_the_settings_is_whose_jobs_are_made_and_seen() {
    let place = Place::new().with_env("TENURE_TENANT", "acme");
    let id = place.enqueue(&["a"]);
    assert_eq!(place.json(&["jobs", "show", &id])["tenant"], "acme");
    assert_eq!(place.run(&["jobs", "show", &id, "--tenant=other"]).code, 1);
}

#[test]
fn jobs_are_kept_where_the_settings_say() {
    let place = Place::new();
    place.write("tenure.toml", "data_dir = \"data\"");
    place.enqueue(&["a"]);
    assert!(place.path("data/tenure.db").exists());
    place.enqueue(&["a", "--database=sqlite:other/jobs.db"]);
    assert!(place.path("other/jobs.db").exists());
}
