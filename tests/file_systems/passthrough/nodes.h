/* What is asked for, the files that the kernel knows, and their names. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#define BUCKETS 65536
#define FAILURES 32
#define RENEWED 4096
#define RENEWAL_US 100000

/* ---- What is asked for. */

static struct {
    int no_case, no_links, no_attributes, rename_flags, nfs_locks, whole_seconds, changing_inodes, no_statfs;
    int links_apart;
    const char *lose, *victims;
    unsigned share;
    struct { const char *operation, *pattern; } failures[FAILURES];
    int failure_count;
} asked = {.share = 5, .lose = ""};

/* True if a word is one of a list with commas. */
static int is_in(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
            return 1;
    return 0;
}

/* True if who asks is one of those whom faults are for. */
static int is_victim(fuse_req_t req) {
    char path[64], name[32] = "";
    if (!asked.victims)
        return 1;
    snprintf(path, sizeof path, "/proc/%d/comm", (int)fuse_req_ctx(req)->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd == -1 ? 0 : read(fd, name, sizeof name - 1);
    if (fd != -1)
        close(fd);
    if (length > 0)
        name[length - 1] = 0;
    return is_in(asked.victims, name);
}

static int fails(fuse_req_t req, const char *operation, const char *name) {
    for (int i = 0; i < asked.failure_count; i++)
        if (strcmp(asked.failures[i].operation, operation) == 0 &&
            fnmatch(asked.failures[i].pattern, name, 0) == 0)
            return is_victim(req);
    return 0;
}

/* True for one in `share` of the operations whose answers get lost: counted, so that runs compare. */
static int is_lost(fuse_req_t req, const char *operation) {
    static atomic_uint count;
    return is_in(asked.lose, operation) && is_victim(req) &&
           atomic_fetch_add(&count, 1) % asked.share == asked.share - 1;
}

/* ---- Files that the kernel knows. A node's address is its number in the protocol. */

struct node {
    struct node *next;
    int fd; /* O_PATH */
    dev_t device;
    ino_t inode, shown_inode;
    uint64_t lookups;
    fuse_ino_t parent;       /* where, and the name by which, it was looked up last */
    char name[NAME_MAX + 1];
};

static struct node *nodes[BUCKETS];
static struct node root = {.shown_inode = FUSE_ROOT_ID};
/* Files that the kernel is about to be told to forget. */
static struct { fuse_ino_t parent; char name[NAME_MAX + 1]; } renewed[RENEWED];
static int renewed_count;
/* For all of these. */
static pthread_mutex_t nodes_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct node *node_of(fuse_ino_t id) {
    return id == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)id;
}

static int fd_of(fuse_ino_t id) { return node_of(id)->fd; }

static struct node **bucket_of(dev_t device, ino_t inode) {
    return &nodes[(inode ^ device * 31) % BUCKETS];
}

/* By which what has no descriptor but O_PATH can be opened, and its attributes be had. */
struct path { char text[32]; };

static struct path path_of(fuse_ino_t id) {
    struct path path;
    snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd_of(id));
    return path;
}

static int node_fails(fuse_req_t req, const char *operation, fuse_ino_t id) {
    if (!asked.failure_count)
        return 0;
    pthread_mutex_lock(&nodes_mutex);
    int result = fails(req, operation, node_of(id)->name);
    pthread_mutex_unlock(&nodes_mutex);
    return result;
}

static int stat_of(struct node *node, int fd, struct stat *stat) {
    if (fstatat(fd, "", stat, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == -1)
        return errno;
    if (asked.changing_inodes || asked.links_apart)
        stat->st_ino = node->shown_inode;
    if (asked.links_apart && !S_ISDIR(stat->st_mode))
        stat->st_nlink = 1;
    if (asked.whole_seconds)
        stat->st_atim.tv_nsec = stat->st_mtim.tv_nsec = stat->st_ctim.tv_nsec = 0;
    return 0;
}

/* True if two names of a file, of which one is the node's, may be one file to the kernel. */
static int is_one(const struct node *node, const struct stat *stat, fuse_ino_t parent, const char *name) {
    return !asked.links_apart || S_ISDIR(stat->st_mode) ||
           (node->parent == parent && strcmp(node->name, name) == 0);
}

/* The node of an open file, which takes over the descriptor. Another lookup of it is counted. */
static struct node *know(int fd, const struct stat *stat, fuse_ino_t parent, const char *name) {
    static ino_t count;
    struct node **bucket = bucket_of(stat->st_dev, stat->st_ino), *node = *bucket;
    while (node && (node->inode != stat->st_ino || node->device != stat->st_dev ||
                    !is_one(node, stat, parent, name)))
        node = node->next;
    if (node) {
        close(fd);
    } else {
        node = calloc(1, sizeof *node);
        if (!node)
            return NULL;
        *node = (struct node){*bucket, fd, stat->st_dev, stat->st_ino, .lookups = 0};
        /* Two mounts of one directory count from different beginnings. */
        node->shown_inode = ((ino_t)getpid() << 32) + ++count;
        *bucket = node;
    }
    node->lookups++;
    snprintf(node->name, sizeof node->name, "%s", name);
    node->parent = parent;
    if (asked.changing_inodes && !S_ISDIR(stat->st_mode) && renewed_count < RENEWED) {
        renewed[renewed_count].parent = parent;
        strcpy(renewed[renewed_count++].name, node->name);
    }
    return node;
}

/* Fills `entry` for a name that is there. The kernel must get it: it counts as a lookup. */
static int find(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry) {
    struct stat stat;
    int fd = openat(fd_of(parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -1)
        return errno;
    if (fstatat(fd, "", &stat, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == -1) {
        int error = errno;
        close(fd);
        return error;
    }
    pthread_mutex_lock(&nodes_mutex);
    struct node *node = know(fd, &stat, parent, name);
    pthread_mutex_unlock(&nodes_mutex);
    if (!node)
        return ENOMEM;
    memset(entry, 0, sizeof *entry);
    entry->ino = (uintptr_t)node;
    return stat_of(node, node->fd, &entry->attr);
}

static void forget(fuse_ino_t id, uint64_t count) {
    struct node *node = node_of(id);
    if (node == &root)
        return;
    pthread_mutex_lock(&nodes_mutex);
    node->lookups -= count;
    int gone = node->lookups == 0;
    if (gone) {
        struct node **at = bucket_of(node->device, node->inode);
        while (*at != node)
            at = &(*at)->next;
        *at = node->next;
    }
    pthread_mutex_unlock(&nodes_mutex);
    if (gone) {
        close(node->fd);
        free(node);
    }
}

/* A file has another name, and keeps its number. */
static void renamed(fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name) {
    struct stat stat;
    if (fstatat(fd_of(to), new_name, &stat, AT_SYMLINK_NOFOLLOW) == -1)
        return;
    pthread_mutex_lock(&nodes_mutex);
    for (struct node *node = *bucket_of(stat.st_dev, stat.st_ino); node; node = node->next)
        if (node->inode == stat.st_ino && node->device == stat.st_dev && is_one(node, &stat, parent, name)) {
            node->parent = to;
            snprintf(node->name, sizeof node->name, "%s", new_name);
        }
    pthread_mutex_unlock(&nodes_mutex);
}

/* Has the kernel forget files, whose nodes and numbers go then unless someone has them open. */
static void *renew(void *session) {
    static typeof(renewed) now;
    for (;;) {
        usleep(RENEWAL_US);
        pthread_mutex_lock(&nodes_mutex);
        int count = renewed_count;
        memcpy(now, renewed, sizeof *now * count);
        renewed_count = 0;
        pthread_mutex_unlock(&nodes_mutex);
        for (int i = 0; i < count; i++)
            fuse_lowlevel_notify_inval_entry(session, now[i].parent, now[i].name, strlen(now[i].name));
    }
    return NULL;
}

/* ---- Names without case. */

/* Held while a name is looked for and used, so that no two come to be that differ in case alone. */
static pthread_mutex_t names_mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_names(void) {
    if (asked.no_case)
        pthread_mutex_lock(&names_mutex);
}

static void unlock_names(void) {
    if (asked.no_case)
        pthread_mutex_unlock(&names_mutex);
}

static int is_same_name(const char *one, const char *other) {
    wchar_t a[NAME_MAX + 1], b[NAME_MAX + 1];
    if (mbstowcs(a, one, NAME_MAX + 1) == (size_t)-1 || mbstowcs(b, other, NAME_MAX + 1) == (size_t)-1)
        return strcmp(one, other) == 0;
    size_t i = 0;
    while (a[i] && towlower(a[i]) == towlower(b[i]))
        i++;
    return a[i] == b[i];
}

struct name { char text[NAME_MAX + 1]; };

/* The name of what is meant by a name: that itself, if there is nothing. */
static struct name actual(fuse_ino_t parent, const char *name) {
    struct name found;
    struct stat stat;
    snprintf(found.text, sizeof found.text, "%s", name);
    if (!asked.no_case || fstatat(fd_of(parent), name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
        return found;
    int fd = openat(fd_of(parent), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd == -1 ? NULL : fdopendir(fd);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (is_same_name(entry->d_name, name)) {
            strcpy(found.text, entry->d_name);
            break;
        }
    if (stream)
        closedir(stream);
    return found;
}
