/* A FUSE file system that shows another directory, with the faults that it is asked for.
 *
 *     cc -O2 -Wall -o passthrough passthrough.c $(pkg-config --cflags --libs fuse3)
 *     passthrough [OPTION...] DIRECTORY MOUNT-POINT
 *
 * Without options it does what the directory's own file system does, less what most of FUSE lacks:
 * no O_TMPFILE, no flags of renameat2, no fallocate, no cloning. Neither attributes nor names may be
 * cached, so that two of them on one directory agree. Runs in the foreground, as root, until it is
 * unmounted or gets a SIGTERM.
 *
 *   --no-case            names are kept as they are given, and found whatever their case is
 *   --no-links           link answers EPERM
 *   --no-attributes      whatever is asked of extended attributes is ENOTSUP
 *   --rename-flags       rename knows RENAME_NOREPLACE and RENAME_EXCHANGE, if that below does
 *   --nfs-locks          as NFS does it: an exclusive flock takes a descriptor that is open for
 *                        writing, a shared one one for reading; else EBADF
 *   --whole-seconds      no time has a fraction
 *   --changing-inodes    a file that no one has open gets another number every tenth of a second,
 *                        and has another one by another mount
 *   --links-apart        each name of a file is a file of its own, with a number of its own and one
 *                        link
 *   --no-statfs          all sizes of the file system are 0
 *   --lose=NAME,...      answers of link, mkdir, unlink, rmdir or rename get lost. What the client
 *                        hears is the answer to its second try: EEXIST for the first two, ENOENT
 *   --share=N            one in N of those answers gets lost (default 5)
 *   --fail=NAME:PATTERN  the operation answers EIO for files whose name matches the shell pattern,
 *                        and does nothing. May be given several times; the names of operations are
 *                        those of the struct at the end
 *   --for=NAME,...       only threads of these names (as `ps -L` shows them) meet lost answers and
 *                        EIO; without it, all do
 */
#include "nodes.h"

#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define THREADS 64

/* ---- Answers. */

#define REFUSE_IF(condition, error)                  \
    do                                               \
        if (condition)                               \
            return (void)fuse_reply_err(req, error); \
    while (0)

/* To what returned -1 if it failed. */
static void answer(fuse_req_t req, int returned) { fuse_reply_err(req, returned == -1 ? errno : 0); }

static void answer_entry(fuse_req_t req, int error, const struct fuse_entry_param *entry) {
    if (error)
        fuse_reply_err(req, error);
    else if (fuse_reply_entry(req, entry) != 0)
        forget(entry->ino, 1);
}

/* ---- Looking. */

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct fuse_entry_param entry;
    REFUSE_IF(fails(req, "lookup", name), EIO);
    answer_entry(req, find(parent, actual(parent, name).text, &entry), &entry);
}

static void do_forget(fuse_req_t req, fuse_ino_t id, uint64_t count) {
    forget(id, count);
    fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets) {
    for (size_t i = 0; i < count; i++)
        forget(forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

/* An open file; a directory, if it has a stream. */
struct handle {
    int fd, flags;
    DIR *stream;
};

static struct handle *handle_of(struct fuse_file_info *info) {
    return (struct handle *)(uintptr_t)info->fh;
}

static void do_getattr(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *info) {
    struct stat stat;
    REFUSE_IF(node_fails(req, "getattr", id), EIO);
    int error = stat_of(node_of(id), info ? handle_of(info)->fd : fd_of(id), &stat);
    REFUSE_IF(error, error);
    fuse_reply_attr(req, &stat, 0);
}

static int set_times(int fd, const struct stat *wanted, int what) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    if (what & FUSE_SET_ATTR_ATIME)
        times[0] = wanted->st_atim;
    if (what & FUSE_SET_ATTR_MTIME)
        times[1] = wanted->st_mtim;
    if (what & FUSE_SET_ATTR_ATIME_NOW)
        times[0].tv_nsec = UTIME_NOW;
    if (what & FUSE_SET_ATTR_MTIME_NOW)
        times[1].tv_nsec = UTIME_NOW;
    return utimensat(fd, "", times, AT_EMPTY_PATH);
}

static void do_setattr(fuse_req_t req, fuse_ino_t id, struct stat *wanted, int what,
                       struct fuse_file_info *info) {
    struct path path = path_of(id);
    int failed = 0;
    REFUSE_IF(node_fails(req, "setattr", id), EIO);
    if (what & FUSE_SET_ATTR_MODE)
        failed = chmod(path.text, wanted->st_mode);
    if (!failed && what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        failed = fchownat(fd_of(id), "", what & FUSE_SET_ATTR_UID ? wanted->st_uid : (uid_t)-1,
                          what & FUSE_SET_ATTR_GID ? wanted->st_gid : (gid_t)-1, AT_EMPTY_PATH);
    if (!failed && what & FUSE_SET_ATTR_SIZE)
        failed = info ? ftruncate(handle_of(info)->fd, wanted->st_size) : truncate(path.text, wanted->st_size);
    if (!failed && what & ~(FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE))
        failed = set_times(fd_of(id), wanted, what);
    REFUSE_IF(failed, errno);
    do_getattr(req, id, info);
}

static void do_readlink(fuse_req_t req, fuse_ino_t id) {
    char target[PATH_MAX + 1];
    ssize_t length = readlinkat(fd_of(id), "", target, PATH_MAX);
    REFUSE_IF(length == -1, errno);
    target[length] = 0;
    fuse_reply_readlink(req, target);
}

static void do_statfs(fuse_req_t req, fuse_ino_t id) {
    struct statvfs stat = {.f_namemax = NAME_MAX, .f_bsize = 512};
    REFUSE_IF(!asked.no_statfs && fstatvfs(fd_of(id), &stat) == -1, errno);
    fuse_reply_statfs(req, &stat);
}

/* ---- Making and removing names. */

/* A new file belongs to who asked for it, and to its directory's group where that is set so. */
static int give(fuse_req_t req, fuse_ino_t parent, const char *name) {
    const struct fuse_ctx *who = fuse_req_ctx(req);
    struct stat above;
    if (who->uid == 0 && who->gid == 0)
        return 0;
    if (fstat(fd_of(parent), &above) == -1)
        return -1;
    gid_t group = above.st_mode & S_ISGID ? (gid_t)-1 : who->gid;
    return fchownat(fd_of(parent), name, who->uid, group, AT_SYMLINK_NOFOLLOW);
}

/* What is to be made: by its mode, or a symbolic link, or another name of a file. */
struct made {
    mode_t mode;
    dev_t device;
    const char *target;
    fuse_ino_t file;
};

static void make(fuse_req_t req, const char *operation, fuse_ino_t parent, const char *name, struct made made) {
    struct fuse_entry_param entry;
    int directory = fd_of(parent), result, error;
    REFUSE_IF(fails(req, operation, name), EIO);
    lock_names();
    struct name there = actual(parent, name);
    if (made.file)
        result = linkat(fd_of(made.file), "", directory, there.text, AT_EMPTY_PATH);
    else if (made.target)
        result = symlinkat(made.target, directory, there.text);
    else if (S_ISDIR(made.mode))
        result = mkdirat(directory, there.text, made.mode);
    else
        result = mknodat(directory, there.text, made.mode, made.device);
    if (result == -1 || (!made.file && give(req, parent, there.text) == -1))
        error = errno;
    else
        error = is_lost(req, operation) ? EEXIST : find(parent, there.text, &entry);
    unlock_names();
    answer_entry(req, error, &entry);
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
    make(req, "mknod", parent, name, (struct made){.mode = mode, .device = device});
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    make(req, "mkdir", parent, name, (struct made){.mode = mode | S_IFDIR});
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
    make(req, "symlink", parent, name, (struct made){.target = target});
}

static void do_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t parent, const char *name) {
    REFUSE_IF(asked.no_links, EPERM);
    make(req, "link", parent, name, (struct made){.file = id});
}

static void take_away(fuse_req_t req, const char *operation, fuse_ino_t parent, const char *name, int flags) {
    REFUSE_IF(fails(req, operation, name), EIO);
    lock_names();
    int error = unlinkat(fd_of(parent), actual(parent, name).text, flags) == -1 ? errno : 0;
    unlock_names();
    fuse_reply_err(req, !error && is_lost(req, operation) ? ENOENT : error);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
    take_away(req, "unlink", parent, name, 0);
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) {
    take_away(req, "rmdir", parent, name, AT_REMOVEDIR);
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name,
                      unsigned flags) {
    /* As all of FUSE that does not know what they ask for. */
    REFUSE_IF(flags && !asked.rename_flags, EINVAL);
    REFUSE_IF(fails(req, "rename", name) || fails(req, "rename", new_name), EIO);
    lock_names();
    struct name from = actual(parent, name), there = actual(to, new_name);
    int error = renameat2(fd_of(parent), from.text, fd_of(to), there.text, flags) == -1 ? errno : 0;
    if (!error && asked.links_apart)
        renamed(parent, from.text, to, there.text);
    unlock_names();
    fuse_reply_err(req, !error && is_lost(req, "rename") ? ENOENT : error);
}

/* ---- Open files. */

/* Takes over a descriptor, which may be -1; an error's number, or 0. */
static int open_handle(struct fuse_file_info *info, int fd) {
    struct handle *handle = fd == -1 ? NULL : calloc(1, sizeof *handle);
    if (!handle)
        return fd == -1 ? errno : ENOMEM;
    *handle = (struct handle){.fd = fd, .flags = info->flags};
    info->fh = (uintptr_t)handle;
    return 0;
}

static void close_handle(struct fuse_file_info *info) {
    struct handle *handle = handle_of(info);
    if (handle->stream)
        closedir(handle->stream);
    else
        close(handle->fd);
    free(handle);
}

static void answer_open(fuse_req_t req, int error, struct fuse_file_info *info) {
    REFUSE_IF(error, error);
    if (fuse_reply_open(req, info) != 0)
        close_handle(info);
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *info) {
    struct fuse_entry_param entry;
    struct stat before;
    REFUSE_IF(fails(req, "create", name), EIO);
    lock_names();
    struct name there = actual(parent, name);
    int is_new = fstatat(fd_of(parent), there.text, &before, AT_SYMLINK_NOFOLLOW) == -1;
    int flags = info->flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    int error = open_handle(info, openat(fd_of(parent), there.text, flags, mode)), opened = !error;
    if (!error)
        error = is_new && give(req, parent, there.text) == -1 ? errno : find(parent, there.text, &entry);
    unlock_names();
    if (error && opened)
        close_handle(info);
    REFUSE_IF(error, error);
    if (fuse_reply_create(req, &entry, info) != 0) {
        close_handle(info);
        forget(entry.ino, 1);
    }
}

static void do_open(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "open", id), EIO);
    int flags = (info->flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL)) | O_CLOEXEC;
    answer_open(req, open_handle(info, open(path_of(id).text, flags)), info);
}

static void do_read(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "read", id), EIO);
    char *bytes = malloc(size);
    ssize_t length = bytes ? pread(handle_of(info)->fd, bytes, size, offset) : -1;
    if (length == -1)
        answer(req, -1);
    else
        fuse_reply_buf(req, bytes, length);
    free(bytes);
}

static void do_write(fuse_req_t req, fuse_ino_t id, const char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "write", id), EIO);
    ssize_t length = pwrite(handle_of(info)->fd, bytes, size, offset);
    REFUSE_IF(length == -1, errno);
    fuse_reply_write(req, length);
}

static void flush(fuse_req_t req, int only_data, struct fuse_file_info *info) {
    answer(req, only_data ? fdatasync(handle_of(info)->fd) : fsync(handle_of(info)->fd));
}

static void do_fsync(fuse_req_t req, fuse_ino_t id, int only_data, struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "fsync", id), EIO);
    flush(req, only_data, info);
}

static void do_fsyncdir(fuse_req_t req, fuse_ino_t id, int only_data, struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "fsyncdir", id), EIO);
    flush(req, only_data, info);
}

/* With it goes its lock. */
static void do_release(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *info) {
    (void)id;
    close_handle(info);
    answer(req, 0);
}

static void do_flock(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *info, int operation) {
    int access = handle_of(info)->flags & O_ACCMODE, kind = operation & ~LOCK_NB;
    REFUSE_IF(node_fails(req, "flock", id), EIO);
    REFUSE_IF(asked.nfs_locks && kind == LOCK_EX && access == O_RDONLY, EBADF);
    REFUSE_IF(asked.nfs_locks && kind == LOCK_SH && access == O_WRONLY, EBADF);
    /* A thread that waits in the kernel could not be told that whoever asked has gone. */
    while (flock(handle_of(info)->fd, operation | LOCK_NB) == -1) {
        REFUSE_IF(errno != EWOULDBLOCK || operation & LOCK_NB, errno);
        REFUSE_IF(fuse_req_interrupted(req), EINTR);
        usleep(1000);
    }
    answer(req, 0);
}

/* ---- Directories. */

static void do_opendir(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *info) {
    REFUSE_IF(node_fails(req, "opendir", id), EIO);
    int fd = openat(fd_of(id), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = open_handle(info, fd);
    if (!error && !(handle_of(info)->stream = fdopendir(fd))) {
        error = errno;
        close_handle(info);
    }
    answer_open(req, error, info);
}

static void do_readdir(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, struct fuse_file_info *info) {
    DIR *stream = handle_of(info)->stream;
    struct dirent *entry;
    size_t used = 0;
    REFUSE_IF(node_fails(req, "readdir", id), EIO);
    char *bytes = malloc(size);
    REFUSE_IF(!bytes, ENOMEM);
    seekdir(stream, offset);
    while ((errno = 0, entry = readdir(stream))) {
        struct stat stat = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        if (asked.changing_inodes || asked.links_apart)
            stat.st_ino = UINT32_MAX; /* as libfuse says it of one that is not known */
        size_t length =
            fuse_add_direntry(req, bytes + used, size - used, entry->d_name, &stat, entry->d_off);
        if (length > size - used)
            break;
        used += length;
    }
    if (!entry && errno && !used)
        answer(req, -1);
    else
        fuse_reply_buf(req, bytes, used);
    free(bytes);
}

/* ---- Extended attributes. */

static void do_setxattr(fuse_req_t req, fuse_ino_t id, const char *name, const char *value, size_t size,
                        int flags) {
    REFUSE_IF(asked.no_attributes, ENOTSUP);
    REFUSE_IF(node_fails(req, "setxattr", id), EIO);
    answer(req, setxattr(path_of(id).text, name, value, size, flags));
}

static void do_removexattr(fuse_req_t req, fuse_ino_t id, const char *name) {
    REFUSE_IF(asked.no_attributes, ENOTSUP);
    REFUSE_IF(node_fails(req, "removexattr", id), EIO);
    answer(req, removexattr(path_of(id).text, name));
}

/* The value of an attribute; without `name`, the names of all. */
static void do_getxattr(fuse_req_t req, fuse_ino_t id, const char *name, size_t size) {
    REFUSE_IF(asked.no_attributes, ENOTSUP);
    REFUSE_IF(node_fails(req, name ? "getxattr" : "listxattr", id), EIO);
    struct path path = path_of(id);
    char *bytes = size ? malloc(size) : NULL;
    ssize_t length = name ? getxattr(path.text, name, bytes, size) : listxattr(path.text, bytes, size);
    if (length == -1)
        answer(req, -1);
    else if (size)
        fuse_reply_buf(req, bytes, length);
    else
        fuse_reply_xattr(req, length);
    free(bytes);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t id, size_t size) { do_getxattr(req, id, NULL, size); }

static const struct fuse_lowlevel_ops operations = {
    .lookup = do_lookup, .forget = do_forget, .forget_multi = do_forget_multi, .getattr = do_getattr,
    .setattr = do_setattr, .readlink = do_readlink, .mknod = do_mknod, .mkdir = do_mkdir,
    .symlink = do_symlink, .link = do_link, .unlink = do_unlink, .rmdir = do_rmdir, .rename = do_rename,
    .create = do_create, .open = do_open, .read = do_read, .write = do_write, .fsync = do_fsync,
    .release = do_release, .flock = do_flock, .opendir = do_opendir, .readdir = do_readdir,
    .fsyncdir = do_fsyncdir, .releasedir = do_release, .statfs = do_statfs, .setxattr = do_setxattr,
    .getxattr = do_getxattr, .listxattr = do_listxattr, .removexattr = do_removexattr,
};

/* ---- The program. */

static void die(const char *what) {
    fprintf(stderr, "passthrough: %s\n", what);
    exit(2);
}

static void read_options(int count, char **words) {
    static const struct option options[] = {
        {"no-case", no_argument, &asked.no_case, 1},
        {"no-links", no_argument, &asked.no_links, 1},
        {"no-attributes", no_argument, &asked.no_attributes, 1},
        {"rename-flags", no_argument, &asked.rename_flags, 1},
        {"nfs-locks", no_argument, &asked.nfs_locks, 1},
        {"whole-seconds", no_argument, &asked.whole_seconds, 1},
        {"changing-inodes", no_argument, &asked.changing_inodes, 1},
        {"links-apart", no_argument, &asked.links_apart, 1},
        {"no-statfs", no_argument, &asked.no_statfs, 1},
        {"lose", required_argument, NULL, 'l'},
        {"share", required_argument, NULL, 's'},
        {"fail", required_argument, NULL, 'f'},
        {"for", required_argument, NULL, 'v'},
        {0},
    };
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        char *colon = option == 'f' ? strchr(optarg, ':') : NULL;
        if (option == 'l')
            asked.lose = optarg;
        else if (option == 'v')
            asked.victims = optarg;
        else if (option == 's' && atoi(optarg) > 0)
            asked.share = atoi(optarg);
        else if (colon && asked.failure_count < FAILURES) {
            *colon = 0;
            asked.failures[asked.failure_count].operation = optarg;
            asked.failures[asked.failure_count++].pattern = colon + 1;
        } else if (option != 0)
            die("what it understands is told at the beginning of passthrough.c");
    }
    if (count - optind != 2)
        die("which directory, and where is it to be shown?");
}

/* Without signals, which are the main thread's. */
static void start_renewing(struct fuse_session *session) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (asked.changing_inodes && pthread_create(&thread, NULL, renew, session) != 0)
        die("no thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(int count, char **words) {
    char *mount_options[] = {words[0], "-o", "allow_other,default_permissions,subtype=passthrough"};
    struct fuse_args args = FUSE_ARGS_INIT(3, mount_options);
    struct rlimit files;
    read_options(count, words);
    setlocale(LC_CTYPE, "C.UTF-8");
    umask(0);
    /* Each file that the kernel remembers takes one. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    root.fd = open(words[optind], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.fd == -1)
        die("the directory can't be opened");
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
    if (!session || fuse_set_signal_handlers(session) != 0)
        die("no session");
    if (fuse_session_mount(session, words[optind + 1]) != 0)
        die("it can't be mounted");
    start_renewing(session);
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, THREADS);
    fuse_loop_cfg_set_idle_threads(loop, THREADS);
    int status = fuse_session_loop_mt(session, loop);
    fuse_session_unmount(session);
    return status != 0;
}
