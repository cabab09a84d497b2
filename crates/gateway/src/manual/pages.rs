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
    /// More entries of SEE ALSO, each such as `slipway-serve(1)`. slipway(1) and the pages of
    /// subcommands are added automatically.
    pub see_also: &'static [&'static str],
}

/// A section.
#[derive(Debug)]
pub struct Section {
    /// `FILES`
    pub title: &'static str,
    /// The items: a term and its meaning; a paragraph, if the term is empty; an example, if it is
    /// `$`.
    pub items: &'static [(&'static str, &'static str)],
}

/// The exit status of commands whose help does not say it.
pub const STATUSES: &[(&str, &str)] = &[
    (
        "slipway-serve",
        "0 stopped by a signal; 1 could not start; 2 the command line, a variable or the configuration file is wrong, or a \
         file of keys or certificates that they name",
    ),
    ("slipway-stat", "0 all was shown; 1 some files could not be examined; 2 the command line is wrong"),
    (
        "slipway-rehash",
        "0 all files have real ETags; 1 some files were left unchanged; 2 nothing could be done",
    ),
    (
        "slipway-sweep",
        "0 all leftovers were removed; 1 some could not be removed; 2 nothing could be done, or the command line is \
         wrong",
    ),
    ("slipway-bench-compare", "0 compared; 2 could not compare"),
    (
        "slipway",
        "0 success; 1 problems were found, or something was left undone; 2 nothing could be done, or the command \
         line is wrong",
    ),
];

/// The exit status of all commands below `slipway admin`.
pub const ADMIN_STATUS: &str =
    "0 done; 1 the gateway refused it; 2 it could not be asked, or the command line is wrong";

/// The pages, in the order of the commands.
pub const PAGES: &[Page] = &[
    Page {
        name: "slipway",
        description: &[
            "A directory is a bucket, and a file is an object, whichever program created it. Objects put through S3 \
             are plain files for every other program, and files created by other programs are objects at once. \
             Gateways keep no state of their own, so that any number of them can serve one tree.",
            "`stat`, `rehash`, `fsck`, `import` and `sweep` maintain a tree, also while gateways serve it; `upgrade` \
             only while none does.",
        ],
        sections: &[
            Section {
                title: "FILES",
                items: &[
                    (
                        "/etc/slipway/slipway.toml",
                        "The configuration of the service slipway.service: slipway.toml(5).",
                    ),
                    (
                        "/var/lib/slipway",
                        "The directory that the service serves, unless its configuration names another.",
                    ),
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
                        "Serve a directory on http://127.0.0.1:9000; the first start prints root's keys, and \
                         commands that use them:",
                    ),
                    ("$", "slipway serve ./data"),
                    ("", "Check a tree for what crashes left in it, and repair it:"),
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
            "Each option can be given as a flag, as an environment variable and (except `config`) as a key of \
             slipway.toml(5). A flag wins over the environment, the environment over the file, the file over the \
             default.",
        ],
        sections: &[
            Section {
                title: "SIGNALS",
                items: &[
                    (
                        "SIGHUP",
                        "Reload: reads flags, environment and file again. Certificates, root's keys, the access \
                         log's file, the password of `--ldap-bind-dn`, `--domain` and `--log` are applied at once; \
                         the log names what changed, and which other options differ and need a restart. If \
                         anything is wrong, nothing is changed.",
                    ),
                    (
                        "SIGTERM, SIGINT",
                        "Stop: during `--drain-delay`, the server goes on serving but is not ready; after that it \
                         accepts no more connections, and requests in progress have `--drain-timeout` to finish. A \
                         second signal cuts them off.",
                    ),
                ],
            },
            Section {
                title: "ENVIRONMENT",
                items: &[
                    (
                        "SLIPWAY_...",
                        "The options, as named with each. The server does not start with an unknown variable that \
                         begins with `SLIPWAY_`.",
                    ),
                    (
                        "SLIPWAY_ROOT_ACCESS_KEY, SLIPWAY_ROOT_SECRET_KEY",
                        "Root's keys. Also accepted: `MINIO_ROOT_USER` and `MINIO_ROOT_PASSWORD`, `ROOT_ACCESS_KEY` \
                         and `ROOT_SECRET_KEY`.",
                    ),
                    (
                        "SLIPWAY_ROOT_UID, SLIPWAY_ROOT_GID",
                        "For `--chown`: the owner and group of files created with root's keys.",
                    ),
                    (
                        "NOTIFY_SOCKET",
                        "The socket of the service manager, which is notified of the start, of reloads and of the \
                         stop: systemd's sd_notify(3).",
                    ),
                    (
                        "LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES",
                        "Sockets passed by a service manager: systemd's sd_listen_fds(3). One named `ops` replaces \
                         `--ops-listen`; those named `s3`, or not named, replace `--listen`.",
                    ),
                    (
                        "OTEL_...",
                        "Variables of OpenTelemetry, read only with `--traces`: its description names them.",
                    ),
                ],
            },
            Section {
                title: "FILES",
                items: &[
                    (
                        "/etc/slipway/slipway.toml",
                        "The configuration of the service slipway.service: \
                        slipway.toml(5).",
                    ),
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
        description: &["The command may be killed at any point, and run again."],
        sections: &[],
        see_also: &["slipway-stat(1)"],
    },
    Page {
        name: "slipway-fsck",
        description: &[
            "Each problem is a line: its name, the path, and an explanation, which says what `--repair` would do. \
             The command may be killed at any point, and run again.",
        ],
        sections: &[],
        see_also: &["slipway-sweep(1)", "slipway-stat(1)"],
    },
    Page {
        name: "slipway-sweep",
        description: &["A server does the same automatically at its start, and every hour."],
        sections: &[],
        see_also: &["slipway-fsck(1)"],
    },
    Page {
        name: "slipway-versions",
        description: &[
            "The commands work on the served directory itself, as the user of the gateways or as root, also while \
             gateways serve it: each key is changed under the lock that gateways take. They may be killed at any \
             point, and run again.",
            "`prune` never removes a current version, nor the newest old version of a key whose file another program \
             removed. `restore` makes copies, which share their blocks with the old versions where the file system \
             can do that.",
        ],
        sections: &[],
        see_also: &["slipway-fsck(1)", "slipway-stat(1)"],
    },
    Page {
        name: "slipway-upgrade",
        description: &[
            "A version serves every directory that an earlier one served, without this command. What would be read \
             wrongly by earlier versions is kept from them by features, which are named in `DIR/.slipway/format`: a \
             version that does not know one of them does not open the directory. The features are \
             `bucket-documents`, buckets may have policies, ACLs and other configuration documents; and \
             `versions`, buckets may keep the versions of their objects.",
            "Upgrade a directory where gateways of earlier versions could be started by mistake, or if the changelog \
             or an error says that something needs it. Files in `DIR/.slipway` are written, and no bucket is looked \
             at. Without options, or with `--dry-run`, the command shows the format of the directory, its features, \
             and what an upgrade would add.",
            "Gateways and commands of this version that work on the directory are found by a lock, and the upgrade is \
             refused. Those of versions without this command cannot be found: hence \
             `--all-gateways-are-stopped`. The command may be killed at any point, and run again.",
        ],
        sections: &[Section {
            title: "FILES",
            items: &[
                ("DIR/.slipway/format", "The features of DIR, one on each line."),
                (
                    "DIR/.slipway/tree.toml",
                    "The format of DIR: 2 if it has features. Versions that know none look at this number.",
                ),
                (
                    "DIR/.slipway/metadata",
                    "Where the records of DIR are, and a word that stops builds which do not look at the number.",
                ),
                ("DIR/.slipway/gateways", "The gateways that serve DIR, and the lock that they hold."),
            ],
        }],
        see_also: &["slipway-serve(1)", "slipway-fsck(1)"],
    },
    Page {
        name: "slipway-bench",
        description: &[
            "Objects are put into a bucket that is created for the measurement and removed at the end. The CPU, \
             memory and files of servers on this machine are shown beside rates and latencies.",
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
    Page {
        name: "slipway-master-key-new",
        description: &[
            "The file is readable by its owner alone. All gateways of a directory need the same master key: copy the \
             file to each, outside of the directory that is served, and keep a copy where the directory's own copies \
             are not. Who has both can sign requests as each user.",
            "To take another key, write its line before that of the old one, on every gateway, and reload them (SIGHUP): \
             secrets are then encrypted with the first key, and decrypted with any. A gateway that has none of the \
             keys in use does not start.",
        ],
        sections: &[Section {
            title: "EXAMPLES",
            items: &[
                ("", "Make the master key of a service:"),
                ("$", "slipway master-key new /etc/slipway/master.key"),
                ("$", "slipway serve --master-key-file /etc/slipway/master.key /srv/s3"),
            ],
        }],
        see_also: &["slipway-serve(1)", "slipway-master-key-rotate(1)"],
    },
    Page {
        name: "slipway-master-key-rotate",
        description: &[
            "The secrets are encrypted with the first key that is given. The keys before it have to be given as well, since \
             they decrypt. Gateways go on serving; each must have been reloaded with the same keys: one without the first key would refuse \
             all users. So nothing is changed without --yes.",
            "The command changes DIR as a gateway does. It is run as the user that the gateways run as.",
        ],
        sections: &[Section {
            title: "EXAMPLES",
            items: &[
                (
                    "",
                    "The file has the new key, and below it the old one; all gateways were reloaded with it:",
                ),
                ("$", "slipway master-key rotate /srv/s3 --master-key-file /etc/slipway/master.key --yes"),
            ],
        }],
        see_also: &["slipway-master-key-new(1)"],
    },
    Page {
        name: "slipway-master-key-forget",
        description: &[
            "Users, groups, roles and policies are not encrypted and stay. The keys become inactive, and new ones have to be \
             made for their users.",
            "The command changes DIR as a gateway does. It is run as the user that the gateways run as.",
        ],
        sections: &[],
        see_also: &["slipway-master-key-new(1)"],
    },
    Page {
        name: "slipway-admin",
        description: &[
            "The commands call the actions of IAM at a gateway, as `aws iam` does, and those for accounts, which only Slipway \
             has. What the key may do decides the server.",
            "Server and keys are found as the AWS CLI finds them: options, then variables, then the profile in `~/.aws/config` \
             and `~/.aws/credentials`. Profiles with `role_arn`, `sso_session` and the like have no keys of their own, and \
             are refused.",
            "A policy is named by its name or its ARN. Lists are whole, however long. With `--json` the members have \
             the names of IAM's API.",
        ],
        sections: &[Section {
            title: "EXAMPLES",
            items: &[
                ("", "A user who may read all buckets of the account, with an access key:"),
                ("$", "slipway admin user create ann --policy AmazonS3ReadOnlyAccess --key"),
                ("", "Another account, by the key that the server was started with:"),
                (
                    "$",
                    "slipway admin --credentials-file /srv/s3/.slipway/credentials.toml --endpoint-url http://127.0.0.1:9000 \
                     account create lab",
                ),
            ],
        }],
        see_also: &["slipway-policy-check(1)", "slipway-master-key-new(1)"],
    },
    Page {
        name: "slipway-policy-check",
        description: &[
            "Each document is a line: accepted or refused, as which type of policy. A refusal has the first fault, \
             with line, column and place in the document: `Statement[0]` is the first statement. What is accepted \
             and has no effect, or another one than its author may think, has a line more, with `note`.",
        ],
        sections: &[Section {
            title: "EXAMPLES",
            items: &[
                ("", "Check a policy of users, and the policy of the bucket `lab`:"),
                ("$", "slipway policy check ann.json"),
                ("$", "slipway policy check --type resource --bucket lab lab.json"),
            ],
        }],
        see_also: &["slipway-policy-explain(1)"],
    },
    Page {
        name: "slipway-policy-explain",
        description: &[
            "The first line says whether the request is allowed, and why. A line for each statement follows: those \
             that decide, those that apply, and those that do not, with the first of their elements that does not \
             match.",
            "Values of condition keys that follow from the principal, the owner and the time are known. All others are absent \
             unless `--condition` gives them. Public access blocks, ACLs and the key that the server was started \
             with are not looked at.",
            "If the directory of `--tree` (or `--posix`, `--posix-names`) says whom the principal is on the file \
             system, the kernel is asked after the policies, as that user, for what a gateway with `--impersonate` \
             would do there. The first directory or file that it refuses is named. This needs root; a process that \
             cannot act as the user decides nothing.",
        ],
        sections: &[Section {
            title: "EXAMPLES",
            items: &[
                ("", "What keeps a user from an object, a policy or a directory's mode?"),
                (
                    "$",
                    "slipway policy explain s3:GetObject arn:aws:s3:::lab/home/x --tree /srv/objects --user ann",
                ),
                ("", "May a user read an object in the bucket of another account?"),
                (
                    "$",
                    "slipway policy explain s3:GetObject arn:aws:s3:::lab/x --principal \
                     arn:aws:iam::111122223333:user/ann --identity ann.json --resource-policy lab.json \
                     --bucket-account 444455556666",
                ),
            ],
        }],
        see_also: &["slipway-policy-check(1)"],
    },
];

/// The page slipway.toml(5).
pub const TOML: Page = Page {
    name: "slipway.toml",
    description: &[
        "The configuration file that `slipway serve --config` reads, in TOML; the service slipway.service reads \
         `/etc/slipway/slipway.toml`.",
    ],
    sections: &[Section {
        title: "FILES",
        items: &[(
            "/etc/slipway/slipway.toml",
            "After a change, run `systemctl reload slipway`. The log names what was applied, and what needs a \
             restart.",
        )],
    }],
    see_also: &["slipway-serve(1)"],
};
