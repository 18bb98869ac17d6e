/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The libswap authors
 *
 * The residency protocol of a block, as the engine runs it: host threads that launch, one worker that
 * evicts and fetches, a device that executes each stream in order. Every interleaving is searched.
 *
 * What is checked
 *   - no kernel that names a block finds its address unmapped                      (assert in touch)
 *   - every read sees the last write, wherever the block lives                     (assert in touch)
 *   - a physical handle belongs to one block at a time                             (assert in take_handle)
 *   - nobody waits for ever                                                        (invalid end states)
 * What is abstracted
 *   - contents are one bit that each kernel checks and flips: a lost, stale or doubled write shows at the
 *     next kernel, and contents can return to what they once were, as a digest can; a digest is the bit
 *     (two bits where the guard is searched: it tells contents apart that one bit would not)
 *   - a compare-and-swap on the block's word is one atomic step; a driver call is one step of its own;
 *     a copy reads in one step and has written in a later one
 *
 * -DHAND_OVER has rules 9 and 10 instead of the careful way (-DBOTH_WAYS: beside it), for explained blocks: the copies run on the device by themselves, a handle has a new
 * owner while its last one's copy out is under way, and a fetched block is mapped before its copy in is done.
 *
 * -DREFUSED has copies in that the driver refuses when the new handle is mapped already.
 *
 * -DAHEAD has copies in advance: a block is copied to its host slot and stays resident; who launches meanwhile waits for
 * the copy on the device.
 *
 * -DSTILL begins before anything can move: launches pin nothing and note no place in a block, they only count
 * themselves while they are being issued.
 *
 * -DBREAK_n switches rule n of the protocol off. Each of these must be found by the search: that is how we
 * know that the model can see what the rule is there for.
 */

#define NB 2 /* blocks */
#define NS 2 /* streams */
#define NT 2 /* host threads */
#define NONE 255

#ifndef HANDLES
#define HANDLES 1 /* fewer than blocks, so that somebody always has to leave */
#endif
#ifndef OPS
#define OPS 2 /* launches per host thread */
#endif
#if !defined(HAND_OVER) || defined(BOTH_WAYS)
#define CAREFUL_WAY
#endif
#ifndef SPONTANEOUS
#define SPONTANEOUS 1 /* evictions that a plan asks for though nobody needs the room */
#endif

#ifdef TREACHEROUS
#define content byte
#define next_content(c) ((c + 1) % 4)
#else
#define content bit
#define next_content(c) (1 - c)
#endif

mtype = { Resident, Leaving, Host, Coming, HandedOver };
mtype = { OnDevice, OnHost, Unmapped };

/* The block's word. Moving: the remap has begun and nobody may pin until it is over. */
typedef Word {
    mtype state;
    bit gen; /* one bit is enough: the worker deals with one block at a time */
    byte pins;
    bool moving;
};

Word word[NB];
mtype mapping[NB];        /* what the block's address shows */
byte handle[NB];          /* the physical handle it owns on the device, or NONE */
byte owner[HANDLES];      /* the block that owns the handle, or NONE */
content on_device[HANDLES];/* contents of a handle */
content on_host[NB];      /* contents of a host slot */
content truth[NB];        /* what the block must hold */
bool record_valid[NB];    /* rule 7: the host copy is good ... */
content record_digest[NB];/* ... if the handle still has this digest */
bool explained[NB];
byte wanted[NB];         /* how many host threads wait for the block */
bool out_due[NB];        /* its copy out was submitted, and is not done */
byte out_of[NB];         /* from this handle */
bool in_due[NB];         /* its copy in was submitted, and is not done */
bool ahead_due[NB];      /* its copy in advance was submitted, and is not done */

/* Streams: what is queued, what was executed; places; events. */
typedef Op {
    byte block;
    bool unnamed;
    bool waits; /* rule 10: for the copy into the block, or in advance, on the device */
};
typedef Queue {
    Op op[4];
};
Queue queue[NS];
byte submitted[NS];
byte completed[NS];
byte place[NS];
byte event_at[NS];        /* completes when that many operations have completed */
byte event_covers[NS];    /* vouches for the places up to here */
typedef Last {
    byte on[NS];
};
Last last[NB];            /* the newest place that names the block, by stream */
byte unexplained_last[NS];
byte unexplained_pins;    /* unexplained launches between their check and their place */
bool stays[NB];           /* the guard caught a write that nobody had announced: resident for good */
bool guard_open;          /* rule 8: unexplained launches wait */
bool poisoned;            /* section 9: data could be lost, said so, no new swapping */
byte threads_done;
#ifdef STILL
bool may_move;            /* somebody needs the worker: from now on launches pin */
byte unpinned;            /* launches without pins between their look at that and their place */
#endif

#ifdef TREACHEROUS
#define known_treacherous true
#else
#define known_treacherous false
#endif

/* A kernel's access. An unnamed one, which we could not connect with the block, may fall into the hole of
 * the remap (the one that the design leaves open): that ends the program as on a device, and is no
 * silent corruption. */
inline touch() {
    if
    :: is_unnamed && known_treacherous && word[b].state == Coming ->
        /* The other hole: a write that nobody announced, into the host copy while it is being fetched. */
        poisoned = true
    :: mapping[b] == Unmapped ->
        assert(is_unnamed || poisoned);
        poisoned = true
    :: mapping[b] == OnDevice && !(is_unnamed && known_treacherous && word[b].state == Coming) ->
        assert(handle[b] != NONE);
        assert(poisoned || on_device[handle[b]] == truth[b]);
        on_device[handle[b]] = next_content(on_device[handle[b]]);
        truth[b] = next_content(truth[b])
    :: mapping[b] == OnHost && !(is_unnamed && known_treacherous && word[b].state == Coming) ->
        /* an unannounced access during the remap may read what the guard is about to refuse */
        assert(poisoned || on_host[b] == truth[b] || (is_unnamed && word[b].moving));
        on_host[b] = next_content(on_host[b]);
        truth[b] = next_content(truth[b])
    fi
}

inline record_event(s) {
    covers = place[s];
    /* rule 3: the place is read before the record call */
#ifdef BREAK_3
    upto = submitted[s];
    covers = NONE;
#else
    upto = submitted[s];
#endif
    atomic {
        if
        :: covers == NONE -> covers = place[s]
        :: else
        fi;
        if
        :: covers > event_covers[s] -> event_covers[s] = covers; event_at[s] = upto
        :: else
        fi
    }
}

#define passed(s, p) ((p) == 0 || (event_covers[s] >= (p) && completed[s] >= event_at[s]))
#define users_done(b) (passed(0, last[b].on[0]) && passed(1, last[b].on[1]))
#define unexplained_done \
    (passed(0, unexplained_last[0]) && passed(1, unexplained_last[1]) && unexplained_pins == 0)

/* Rule 8: no unexplained launch is in flight when a block that is not explained begins to move. */
#ifdef BREAK_8
#define calm(b) true
#else
#define calm(b) (explained[b] || unexplained_done)
#endif

/* Rule 4: a fetch begins when all users of the host copy have completed. */
#ifdef BREAK_4
#define host_users_done(b) true
#else
#define host_users_done(b) users_done(b)
#endif

/* One launch that names block b, on stream s. */
inline launch(b, s) {
    /* pin: one compare-and-swap on the word */
    pinned = false;
    do
    :: pinned -> break
    :: !pinned ->
        atomic {
            if
            :: word[b].moving -> skip
            :: !word[b].moving && word[b].state == Resident -> word[b].pins++; pinned = true
            :: !word[b].moving && word[b].state == Leaving ->
                /* rule 2: pinning a leaving block makes it resident again */
                word[b].pins++;
#ifndef BREAK_2
                word[b].state = Resident;
                word[b].gen = 1 - word[b].gen;
#endif
                pinned = true
#ifdef BREAK_9
            :: !word[b].moving && word[b].state == HandedOver ->
                word[b].pins++;
                word[b].state = Resident;
                word[b].gen = 1 - word[b].gen;
                pinned = true
#endif
            :: !word[b].moving && word[b].state == Host && may_use_host ->
                /* rule 15: without progress the launch goes out with its operand on the host */
                word[b].pins++;
                record_valid[b] = false; /* rule 7: a GPU write in state Host voids the record */
                pinned = true
            :: else -> skip
            fi
        };
        if
        :: pinned -> skip
        :: else ->
            /* a waiting launch holds no pins and checks again afterwards */
            atomic { wanted[b]++ };
            atomic {
                (!word[b].moving && (word[b].state == Resident || word[b].state == Leaving)) || poisoned || stays[1 - b];
                wanted[b]--;
                /* rule 15: nobody can make room, so the kernel reads over the link */
                may_use_host = may_use_host || stays[1 - b]
            };
            if
            :: poisoned -> goto done
            :: else -> skip
            fi
        fi
    od;
#ifdef BREAK_1
    atomic { word[b].pins-- }; /* unpinned before the operation has a place */
#endif
    atomic {
        queue[s].op[submitted[s]].block = b;
        queue[s].op[submitted[s]].unnamed = false;
#ifndef BREAK_10
        queue[s].op[submitted[s]].waits = in_due[b] || ahead_due[b];
#endif
        submitted[s]++
    };
    atomic {
        place[s]++;
        p = place[s];
        if
        :: p > last[b].on[s] -> last[b].on[s] = p
        :: else
        fi;
#ifndef BREAK_1
        word[b].pins--
#endif
    }
}

#ifdef STILL
/* While nothing can move: counted first, then the look whether that is so. */
inline enter_stillness() {
#ifdef BREAK_LOOK
    is_still = !may_move;
    atomic { unpinned++ };
#else
    atomic { unpinned++ };
    is_still = !may_move;
#endif
    if
    :: is_still -> skip
    :: else -> atomic { unpinned-- }
    fi
}

/* The place goes into no block. `unexplained`: into the list of such launches. */
inline launch_unpinned(b, s, unexplained) {
    atomic {
        queue[s].op[submitted[s]].block = b;
        queue[s].op[submitted[s]].unnamed = unexplained;
        submitted[s]++
    };
    atomic {
        place[s]++;
        if
        :: unexplained && place[s] > unexplained_last[s] -> unexplained_last[s] = place[s]
        :: else
        fi
    };
    atomic { unpinned-- }
}

/* The worker begins: once none of those is left, each block may have been used at every place so far. */
inline end_stillness() {
    may_move;
#ifndef BREAK_COUNT
    unpinned == 0;
#endif
#ifndef BREAK_FLOOR
    b = 0;
    do
    :: b == NB -> break
    :: else ->
        s = 0;
        do
        :: s == NS -> break
        :: else ->
            upto = place[s];
            atomic {
                if
                :: upto > last[b].on[s] -> last[b].on[s] = upto
                :: else
                fi
            };
            s++
        od;
        b++
    od;
    b = 0; s = 0; upto = 0
#endif
}

/* Whatever needs the worker: at any time. */
proctype Beginner() { may_move = true }
#endif

/* A launch that we could not explain: it names nothing, and may touch a block that is not explained. */
inline launch_unexplained(b, s) {
    atomic {
#ifndef BREAK_8
        !guard_open || poisoned;
#endif
        unexplained_pins++
    };
    atomic {
        queue[s].op[submitted[s]].block = b;
        queue[s].op[submitted[s]].unnamed = true;
        submitted[s]++
    };
    atomic {
        place[s]++;
        p = place[s];
        if
        :: p > unexplained_last[s] -> unexplained_last[s] = p
        :: else
        fi
    };
    atomic { unexplained_pins-- };
    record_event(s)
}

/* A launch that we believe to be explained, and that touches a block which it does not name. */
inline launch_treacherous(b, s) {
    atomic {
        queue[s].op[submitted[s]].block = b;
        queue[s].op[submitted[s]].unnamed = true;
        submitted[s]++
    };
    atomic { place[s]++ }
}

proctype HostThread(byte me) {
    byte n = 0;
    byte p, upto, covers, b, s;
    bool pinned, may_use_host;
#ifdef STILL
    bool is_still;
#endif
    do
    :: n == OPS -> break
    :: n < OPS && !poisoned ->
        n++;
        may_use_host = false;
        if
        :: b = 0
        :: b = 1
        fi;
        if
        :: s = me
#ifdef SHARED_STREAM
        :: s = 1 - me
#endif
        fi;
#ifdef STILL
        enter_stillness();
#endif
        if
#ifdef STILL
        :: is_still -> launch_unpinned(b, s, false)
#ifdef UNEXPLAINED
        :: is_still -> launch_unpinned(0, s, true)
#endif
        :: !is_still -> launch(b, s)
#else
        :: launch(b, s)
#endif
#ifdef ZERO_COPY
        :: may_use_host = true; launch(b, s)
#endif
#if defined(UNEXPLAINED) && defined(STILL)
        :: !is_still -> launch_unexplained(0, s)
#elif defined(UNEXPLAINED)
        :: launch_unexplained(0, s)
#endif
#ifdef TREACHEROUS
        :: launch_treacherous(0, s)
#endif
        fi
    :: poisoned -> break
    od;
done:
    atomic { threads_done++ }
}

proctype Stream(byte s) {
    byte b;
    bool is_unnamed;
end:
    do
    :: atomic { completed[s] < submitted[s] &&
                (!queue[s].op[completed[s]].waits ||
                 (!in_due[queue[s].op[completed[s]].block] && !ahead_due[queue[s].op[completed[s]].block])) ->
           b = queue[s].op[completed[s]].block;
           is_unnamed = queue[s].op[completed[s]].unnamed;
           touch();
           completed[s]++ }
    od
}

#ifdef HAND_OVER
/* Our copy streams. A copy into a handle waits for the copy out of it. */
#define handle_drained(h) (!(out_due[0] && out_of[0] == h) && !(out_due[1] && out_of[1] == h))
proctype Copies(byte b) {
    content snapshot;
end:
    do
    :: atomic { out_due[b] -> snapshot = on_device[out_of[b]] };
       atomic { on_host[b] = snapshot; out_due[b] = false }
    :: atomic { in_due[b] && !out_due[b] && handle_drained(handle[b]) -> snapshot = on_host[b] };
       atomic { on_device[handle[b]] = snapshot;
                record_valid[b] = true; record_digest[b] = snapshot;
                in_due[b] = false }
    od
}

/* Gives the handle away as soon as the copy out is submitted: only where the last user has completed, so that nobody
 * who waits for the copy waits for the program. */
inline hand_over(b) {
    go = false;
    atomic {
        if
        :: word[b].state == Resident && word[b].pins == 0 && !word[b].moving && !poisoned && !in_due[b] && !out_due[b] ->
            word[b].state = Leaving; gen = word[b].gen; go = true
        :: else
        fi
    };
    if
    :: !go -> skip
    :: else ->
        record_event(0);
        record_event(1);
        atomic {
            if
            :: users_done(b) && word[b].gen == gen && word[b].state == Leaving ->
                digest = on_device[handle[b]];
                if
                :: record_valid[b] && record_digest[b] == digest -> skip
                :: else -> record_valid[b] = false; out_of[b] = handle[b]; out_due[b] = true
                fi
            :: else -> go = false
            fi
        };
        /* rule 9: never cancelled from here on */
        atomic {
            if
            :: go && word[b].gen == gen && word[b].state == Leaving && word[b].pins == 0 ->
                word[b].state = HandedOver;
                owner[handle[b]] = NONE
            :: word[b].gen == gen && word[b].state == Leaving && !(go && word[b].pins == 0) ->
                word[b].state = Resident; word[b].gen = 1 - word[b].gen
            :: else
            fi
        }
    fi
}

/* Its copy is done: the address is remapped onto the host copy. */
inline settle_down(b) {
    atomic { assert(word[b].pins == 0); word[b].moving = true };
    atomic { mapping[b] = Unmapped };
    atomic { mapping[b] = OnHost; handle[b] = NONE;
             word[b].state = Host; word[b].gen = 1 - word[b].gen; word[b].moving = false }
}

/* Maps the new handle at once, before its copy is submitted or after; who uses the block waits for the copy on the device.
 * A copy that the driver refuses is never due: the host slot is mapped again. */
inline fetch_early(b) {
    go = false;
    atomic {
        if
        :: word[b].state == Host && word[b].pins == 0 && !word[b].moving && !poisoned && host_users_done(b) ->
            word[b].state = Coming; go = true
        :: else
        fi
    };
    if
    :: !go ->
        record_event(0);
        record_event(1)
    :: else ->
        atomic {
            h = 0;
            do
            :: owner[h] == NONE -> break
            :: else -> h++
            od;
            take_handle(b, h);
            word[b].moving = true
        };
        if
        :: atomic { handle[b] = h; in_due[b] = true };
           atomic { mapping[b] = Unmapped };
           atomic { mapping[b] = OnDevice }
        :: atomic { mapping[b] = Unmapped };
           atomic { handle[b] = h; mapping[b] = OnDevice };
           atomic { in_due[b] = true }
#ifdef REFUSED
        :: atomic { mapping[b] = Unmapped };
           atomic { handle[b] = h; mapping[b] = OnDevice };
#ifdef BREAK_BACK
           atomic { go = true };
#else
           atomic { go = false };
           atomic { mapping[b] = Unmapped };
           atomic { mapping[b] = OnHost; handle[b] = NONE; owner[h] = NONE }
#endif
#endif
        fi;
        atomic {
            if
            :: go -> word[b].state = Resident
            :: else -> word[b].state = Host
            fi;
            word[b].gen = 1 - word[b].gen; word[b].moving = false
        }
    fi
}
#define settled(b) (!in_due[b] && !out_due[b] && !ahead_due[b])
#else
#define settled(b) (!ahead_due[b])
#endif

#ifdef AHEAD
/* Only while nobody uses the block. The digest comes before the copy. */
proctype AheadCopies(byte b) {
    content digest, snapshot;
end:
    do
    :: atomic { ahead_due[b] -> digest = on_device[handle[b]] };
       atomic { snapshot = on_device[handle[b]] };
       atomic { on_host[b] = snapshot;
                record_valid[b] = true; record_digest[b] = digest;
                ahead_due[b] = false }
    od
}

#ifdef BREAK_AHEAD_USERS
#define at_rest(b) true
#else
#define at_rest(b) users_done(b)
#endif

inline copy_ahead(b) {
    record_event(0);
    record_event(1);
    go = false;
    atomic {
        if
        :: word[b].state == Resident && word[b].pins == 0 && !word[b].moving && !poisoned ->
            word[b].moving = true; go = true
        :: else
        fi
    };
    if
    :: !go -> skip
    :: else ->
        atomic {
            if
            :: at_rest(b) -> record_valid[b] = false; ahead_due[b] = true
            :: else
            fi
        };
        atomic { word[b].moving = false }
    fi
}
#endif

inline take_handle(b, h) {
    assert(owner[h] == NONE);
    owner[h] = b
}

/* Copies a handle to the host slot and remaps the address onto it. Waits are for conditions that the
 * worker sees by querying events. Any pin meanwhile cancels. */
inline evict(b) {
    go = false;
    atomic {
        if
        :: word[b].state == Resident && word[b].pins == 0 && !word[b].moving && !poisoned && calm(b) ->
            word[b].state = Leaving;
            gen = word[b].gen;
            if
            :: !explained[b] -> guard_open = true
            :: else
            fi;
            go = true
        :: else
        fi
    };
    if
    :: !go -> skip
    :: else ->
        /* rule 6: the copy waits for the last user */
#ifndef BREAK_6
        do
        :: users_done(b) || word[b].gen != gen || word[b].state != Leaving -> break
#ifndef BREAK_13
        :: else ->
            /* rule 13: the last operation of an idle stream may have no event yet */
            record_event(0);
            record_event(1);
            /* a query, again and again: here, until there is something new to see */
            (users_done(b) || word[b].gen != gen || word[b].state != Leaving ||
             event_covers[0] < last[b].on[0] || event_covers[1] < last[b].on[1])
#endif
        od;
#endif
        atomic { digest = on_device[handle[b]] };
        if
        :: word[b].gen != gen || word[b].state != Leaving -> skip
        :: else ->
            if
            :: record_valid[b] && record_digest[b] == digest -> skip /* the host copy is good */
            :: else ->
#ifndef BREAK_7
                /* rule 7: a copy into the host slot voids the record, even if it is cancelled later */
                record_valid[b] = false;
#endif
                atomic { snapshot = on_device[handle[b]] };
                atomic { on_host[b] = snapshot }
            fi;
            /* the remap begins only at zero pins and on the same word */
            go = false;
            atomic {
                if
                :: word[b].gen == gen && word[b].state == Leaving && word[b].pins == 0 ->
                    word[b].moving = true;
                    go = true
#ifdef BREAK_2
                :: word[b].gen == gen && word[b].state == Leaving && word[b].pins != 0 ->
                    word[b].moving = true;
                    go = true
#endif
                :: else
                fi
            };
            if
            :: !go -> skip
            :: else ->
                atomic { mapping[b] = Unmapped };
                atomic { mapping[b] = OnHost };
                /* rule 8: the guard. A digest of the handle again, before anybody else gets it. */
                if
#ifndef BREAK_GUARD
                :: atomic { !explained[b] && on_device[handle[b]] != digest ->
                    if
                    :: on_host[b] == digest ->
                        mapping[b] = Unmapped
                    :: else -> poisoned = true /* both were written: said so */
                    fi };
                    if
                    :: poisoned -> skip
                    :: else ->
                        atomic { mapping[b] = OnDevice };
                        atomic { record_valid[b] = false; stays[b] = true;
                                 word[b].state = Resident; word[b].gen = 1 - word[b].gen; word[b].moving = false }
                    fi
#endif
                :: else ->
                    atomic {
                        owner[handle[b]] = NONE;
                        handle[b] = NONE;
                        word[b].state = Host;
                        word[b].gen = 1 - word[b].gen;
                        word[b].moving = false
                    }
                fi
            fi
        fi;
        atomic {
            guard_open = false;
            if
            :: word[b].gen == gen && word[b].state == Leaving && !word[b].moving ->
                word[b].state = Resident; word[b].gen = 1 - word[b].gen
            :: else
            fi
        }
    fi
}

inline fetch(b) {
    go = false;
    atomic {
        if
        :: word[b].state == Host && word[b].pins == 0 && !word[b].moving && !poisoned && calm(b) ->
            /* rule 4: when all users of the host copy have completed */
            if
            :: host_users_done(b) ->
                word[b].state = Coming;
                gen = word[b].gen;
                if
                :: !explained[b] -> guard_open = true
                :: else
                fi;
                go = true
            :: else
            fi
        :: else
        fi
    };
    if
    :: !go ->
        /* users of the host copy are still running, or have no event yet */
        record_event(0);
        record_event(1)
    :: else ->
        atomic {
            h = 0;
            do
            :: owner[h] == NONE -> break
            :: else -> h++
            od;
            take_handle(b, h)
        };
        atomic { snapshot = on_host[b] };
        atomic { on_device[h] = snapshot };
        atomic { word[b].moving = true; assert(word[b].pins == 0) };
        atomic { mapping[b] = Unmapped };
        atomic {
            handle[b] = h;
            mapping[b] = OnDevice
        };
        atomic {
            record_valid[b] = true;
            record_digest[b] = snapshot;
            guard_open = false;
            word[b].state = Resident;
            word[b].gen = 1 - word[b].gen;
            word[b].moving = false
        }
    fi
}

#define handle_free (owner[0] == NONE || (HANDLES == 2 && owner[HANDLES - 1] == NONE))
/* A copy that is waited for by the host, not on the device, takes no handle that is still copied from. */
#if defined(HAND_OVER) && !defined(BREAK_11)
#define handle_ready (handle_free && handle_drained(0))
#else
#define handle_ready handle_free
#endif
#define may_leave(b) (word[b].state == Resident && word[b].pins == 0 && !stays[b] && settled(b))

proctype Worker() {
    byte h, upto, covers;
    bit gen;
    content digest, snapshot;
    byte spontaneous = 0;
    byte copied_ahead = 0;
    bool go;
#ifdef STILL
    byte b, s;
    end_stillness();
#endif
end:
    do
    :: poisoned -> break
    :: threads_done == NT -> break
#ifdef CAREFUL_WAY
    :: wanted[0] && word[0].state == Host && handle_ready -> fetch(0)
    :: wanted[1] && word[1].state == Host && handle_ready -> fetch(1)
    :: wanted[0] && word[0].state == Host && !handle_free && may_leave(1) -> evict(1)
    :: wanted[1] && word[1].state == Host && !handle_free && may_leave(0) -> evict(0)
#endif
#ifdef HAND_OVER
    :: word[0].state == HandedOver && settled(0) -> settle_down(0)
    :: word[1].state == HandedOver && settled(1) -> settle_down(1)
    :: wanted[0] && word[0].state == Host && handle_free -> fetch_early(0)
    :: wanted[1] && word[1].state == Host && handle_free -> fetch_early(1)
    :: wanted[0] && word[0].state == Host && !handle_free && may_leave(1) -> hand_over(1)
    :: wanted[1] && word[1].state == Host && !handle_free && may_leave(0) -> hand_over(0)
#endif
#ifdef AHEAD
    :: copied_ahead < AHEAD && may_leave(0) -> copied_ahead++; copy_ahead(0)
    :: copied_ahead < AHEAD && may_leave(1) -> copied_ahead++; copy_ahead(1)
#endif
    :: spontaneous < SPONTANEOUS && may_leave(0) -> spontaneous++; evict(0)
    :: spontaneous < SPONTANEOUS && may_leave(1) -> spontaneous++; evict(1)
    od
}

/* At the end, when all has drained, what the program would read is what it wrote. */
proctype Program() {
    threads_done == NT;
    completed[0] == submitted[0] && completed[1] == submitted[1];
    settled(0) && settled(1);
    atomic {
        if
        :: poisoned || word[0].moving || word[1].moving || word[0].state == Coming || word[1].state == Coming
        :: else ->
            byte b = 0;
            do
            :: b == NB -> break
            :: else ->
                assert(mapping[b] != OnDevice || word[b].state == HandedOver || on_device[handle[b]] == truth[b]);
                assert(word[b].state != HandedOver || on_host[b] == truth[b]);
                assert(mapping[b] != OnHost || on_host[b] == truth[b]);
                b++
            od
        fi
    }
}

init {
    atomic {
        byte i = 0;
        do
        :: i == HANDLES -> break
        :: else -> owner[i] = NONE; i++
        od;
        i = 0;
        do
        :: i == NB -> break
        :: i < NB && i < HANDLES ->
            word[i].state = Resident; mapping[i] = OnDevice; handle[i] = i; owner[i] = i; i++
        :: i < NB && i >= HANDLES ->
            word[i].state = Host; mapping[i] = OnHost; handle[i] = NONE; i++
        od;
        explained[0] = true;
        explained[1] = true;
#if defined(UNEXPLAINED) || defined(TREACHEROUS)
        explained[0] = false;
#endif
        run HostThread(0);
        run HostThread(1);
        run Stream(0);
        run Stream(1);
        run Worker();
#ifdef STILL
        run Beginner();
#endif
#ifdef AHEAD
        run AheadCopies(0);
        run AheadCopies(1);
#endif
#ifdef HAND_OVER
        run Copies(0);
        run Copies(1);
#endif
        run Program()
    }
}
