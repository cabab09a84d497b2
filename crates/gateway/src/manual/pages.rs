//! The parts of the manual that are not made from the options.

/// Additions to a page.
#[derive(Debug)]
pub struct Page {
    /// `slipway-serve`
    pub name: &'static str,
    /// Paragraphs after the command's own description.
    pub description: &'static [&'static str],
    /// Sections after the options.
    pub sections: &'static [Section],
    /// The pages to see besides slipway(1) and those of subcommands: `slipway-serve(1)`.
    pub see_also: &'static [&'static str],
}

/// A section.
#[derive(Debug)]
pub struct Section {
    /// `FILES`
    pub title: &'static str,
    /// A term and what it means; a paragraph, if the term is empty; an example, if it is `$`.
    pub items: &'static [(&'static str, &'static str)],
}

/// The exit status of commands whose help does not say it.
pub const STATUSES: &[(&str, &str)] = &[
    (
        "slipway-serve",
        "0 stopped as it was told to; 1 could not start; 2 the command line, a variable or the file is wrong",
    ),
    ("slipway-stat", "0 all is told; 1 something could not be looked at; 2 the command line is wrong"),
    ("slipway-rehash", "0 all have real ETags; 1 some were left as they were; 2 nothing could be done"),
    (
        "slipway-sweep",
        "0 all is swept; 1 something could not be; 2 nothing could be, or the command line is wrong",
    ),
    ("slipway-bench-compare", "0 compared; 2 could not compare"),
    (
        "slipway",
        "0 all is well; 1 something is not, or was left as it was; 2 nothing could be done, or the command line is wrong",
    ),
];

/// In the order of the commands.
pub const PAGES: &[Page] = &[
    Page {
        name: "slipway",
        description: &[
            "A directory is a bucket, a file is an object, whoever made it. What is put through S3 is a plain file for every other \
             program, and files that these make are objects at once. Gateways keep no state of their own, so that any number of them \
             serve one tree.",
            "`stat`, `rehash`, `fsck`, `import` and `sweep` look after a tree, also while gateways serve it.",
        ],
        sections: &[
            Section {
                title: "FILES",
                items: &[
                    (
                        "/etc/slipway/slipway.toml",
                        "The configuration of the service slipway.service: slipway.toml(5).",
                    ),
                    ("/var/lib/slipway", "What that serves, unless it is told otherwise."),
                    (
                        "DIR/.slipway/credentials.toml",
                        "Root's keys for DIR, unless others are given. Made at the first start; its owner alone may read it.",
                    ),
                    (
                        "DIR/.slipway/account.toml",
                        "The account that all buckets and objects of DIR belong to.",
                    ),
                    ("DIR/.slipway/tree.toml", "The format of DIR, and what its gateways have to agree on."),
                ],
            },
            Section {
                title: "EXAMPLES",
                items: &[
                    (
                        "",
                        "Serve a directory on http://127.0.0.1:9000; the first start prints root's keys, and what to do with them:",
                    ),
                    ("$", "slipway serve ./data"),
                    ("", "Look at what crashes left in a tree, and repair it:"),
                    ("$", "slipway fsck --repair /srv/objects"),
                    ("", "Measure a server:"),
                    ("$", "slipway bench http://127.0.0.1:9000 put -c 16"),
                ],
            },
        ],
        see_also: &["slipway.toml(5)"],
    },
    Page {
        name: "slipway-serve",
        description: &[
            "Each option is a flag, an environment variable and (but for `config`) a key of slipway.toml(5). A flag wins over the \
             environment, the environment over the file, the file over the default.",
        ],
        sections: &[
            Section {
                title: "SIGNALS",
                items: &[
                    (
                        "SIGHUP",
                        "Reads flags, environment and file again. Certificates, root's keys, the access log's file, `--domain` and `--log` are \
                         taken at once; the log says what was new, and which other options differ, which needs a restart. If anything is wrong, all stays \
                         as it was.",
                    ),
                    (
                        "SIGTERM, SIGINT",
                        "Stop: after `--drain-delay`, in which it serves on but is not ready, no more connections are accepted, and \
                         requests in progress have `--drain-timeout` to finish. A second one cuts them off.",
                    ),
                ],
            },
            Section {
                title: "ENVIRONMENT",
                items: &[
                    (
                        "SLIPWAY_...",
                        "Options, as said with each. A variable that begins so and is no option's is refused.",
                    ),
                    (
                        "SLIPWAY_ROOT_ACCESS_KEY, SLIPWAY_ROOT_SECRET_KEY",
                        "Root's keys. Understood too: `MINIO_ROOT_USER` and `MINIO_ROOT_PASSWORD`, `ROOT_ACCESS_KEY` and `ROOT_SECRET_KEY`.",
                    ),
                    ("SLIPWAY_ROOT_UID, SLIPWAY_ROOT_GID", "For `--chown`: to whom root's files belong."),
                    (
                        "NOTIFY_SOCKET",
                        "A service manager, which is told of the start, of reloads and of the stop: systemd's sd_notify(3).",
                    ),
                    (
                        "LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES",
                        "Sockets that a service manager hands over: systemd's sd_listen_fds(3). Those named `ops` take the place of \
                         `--ops-listen`, those named `s3`, or not named, of `--listen`.",
                    ),
                    ("OTEL_...", "Of OpenTelemetry's variables, with `--traces` alone: those that it names."),
                ],
            },
            Section {
                title: "FILES",
                items: &[
                    ("/etc/slipway/slipway.toml", "What the service slipway.service reads: slipway.toml(5)."),
                    (
                        "DIR/.slipway/credentials.toml",
                        "Root's keys, unless others are given. Made at the first start; its owner alone may read it.",
                    ),
                    (
                        "DIR/.slipway/account.toml",
                        "The account that all buckets and objects of DIR belong to.",
                    ),
                    ("DIR/.slipway/tree.toml", "The format of DIR, and what its gateways have to agree on."),
                ],
            },
        ],
        see_also: &["slipway-fsck(1)", "slipway-sweep(1)", "slipway.toml(5)", "systemctl(1)"],
    },
    Page {
        name: "slipway-stat",
        description: &[],
        sections: &[],
        see_also: &["slipway-rehash(1)", "slipway-fsck(1)"],
    },
    Page {
        name: "slipway-rehash",
        description: &["It may be killed at any point, and run again."],
        sections: &[],
        see_also: &["slipway-stat(1)"],
    },
    Page {
        name: "slipway-fsck",
        description: &[
            "Each problem is a line: its name, the path, and an explanation; what `--repair` repairs is marked so. It may be killed at any \
             point, and run again.",
        ],
        sections: &[],
        see_also: &["slipway-sweep(1)", "slipway-stat(1)"],
    },
    Page {
        name: "slipway-sweep",
        description: &["A server does the same at its start, and every hour."],
        sections: &[],
        see_also: &["slipway-fsck(1)"],
    },
    Page {
        name: "slipway-bench",
        description: &[
            "Objects are put into a bucket that is made for it and removed in the end. The CPU, memory and files of servers on this machine \
             are shown beside rates and latencies.",
        ],
        sections: &[Section {
            title: "ENVIRONMENT",
            items: &[
                (
                    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
                    "The keys, without `--credentials-file`.",
                ),
                ("AWS_REGION, AWS_DEFAULT_REGION", "The region, without `--region`."),
            ],
        }],
        see_also: &["slipway-plan(1)"],
    },
    Page { name: "slipway-plan", description: &[], sections: &[], see_also: &["slipway-bench(1)"] },
];

/// slipway.toml(5).
pub const TOML: Page = Page {
    name: "slipway.toml",
    description: &[
        "The file that `slipway serve --config` reads; the service slipway.service reads `/etc/slipway/slipway.toml`. It is TOML.",
    ],
    sections: &[Section {
        title: "FILES",
        items: &[(
            "/etc/slipway/slipway.toml",
            "After a change: `systemctl reload slipway`. The log says what was taken, and what needs a restart.",
        )],
    }],
    see_also: &["slipway-serve(1)"],
};
