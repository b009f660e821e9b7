/* The delivery of records: a device, another with a copy of its card, a third one, and a server.
 *
 * Each step names the function that it stands for and prints the name of the simulator's step. `deploy/model` tries every
 * order of them, and puts the faults of Tests/Model/faults.json back. Properties have names in capitals.
 *
 * A request, the server's disk, the answer and the commit of the verdict are one step, with what may go wrong on the way: what
 * other devices do meanwhile, they could do before or after. A restore of the server, and what people let its devices send
 * again, are one step, too; they come while no answer is under way. Tests/README.md lists what is left out.
 */
#ifndef BATCHES
#define BATCHES 4	/* that are frozen; the parts of a split and what is requeued come on top */
#define CRASHES 2	/* of devices; those of the server are not counted */
#define RESTORES 1	/* of a backup of the server */
#endif
#define DEVICES 3
#define COPY 1		/* the device that runs with a copy of the card of device 0 */
#define THIRD 2		/* shares nothing with the others but the server, so one record is enough */
#define KEYS 4		/* per device: keys are random, so no two devices draw the same */
#define BIT(n) (1 << (n))
#define MANY(set) ((set) & ((set) - 1))

mtype = { FREE, PENDING, FROZEN, UPLOADED, QUARANTINED, GONE }

typedef Record { mtype state = FREE; byte id; byte key; bit wasSent };
typedef Card { bool isOn; Record record[2]; byte drawn };

Card card[DEVICES];
byte lateKey, lateIDs;	/* sent by a device that was then killed: may arrive, and nobody waits for the answer */
byte frozen, crashes, restores, oversized;
byte poison;		/* the record that the server refuses */

/* Sets of ids. All but the first are the judge's: what the server ever had, what came under each key, what there ever was,
 * and what was reported as lost. */
byte server, everOnServer, idsUnder[THIRD * KEYS + 2], made, told;
hidden byte key, ids, new, e, there, uploaded;	/* within a step */

#define d _pid
#define R0 card[d].record[0]
#define R1 card[d].record[1]
#define RESTS(e, n) (card[e].record[n].state != FROZEN && (card[e].record[n].state != PENDING || frozen == BATCHES))
#define SETTLED(e) (!card[e].isOn || (RESTS(e, 0) && RESTS(e, 1)))
#ifdef LIVENESS
bool isQuiet;
#define FAULTS (!isQuiet)
#else
#define FAULTS true
#endif

/* Archive.store: a record is known by its id, whatever key it comes under. */
inline store(name, set) {
	/* KEY: under a key come the same ids, at each try. */
	assert(idsUnder[name] == 0 || idsUnder[name] == set);
	idsUnder[name] = set;
	new = set & ~(server | poison);
	/* TWICE: a record is stored once. */
	assert((server & new) == 0);
	server = server | new; everOnServer = everOnServer | new
}

inline add(n, to) {
	card[d].record[n].state = to; card[d].record[n].id = d * 2 + n;
	/* ID: an id is one record's for ever. */
	assert(!(made & BIT(card[d].record[n].id)));
	made = made | BIT(card[d].record[n].id)
}

inline drawKey(n) {
	/* RETRY: what was sent goes again under its key, unless it is split or a person requeues it. */
	assert(!card[d].record[n].wasSent);
	/* BOUND: of the model. */
	assert(card[d].drawn <= KEYS);
	card[d].record[n].key = d * KEYS + card[d].drawn
}

inline delete(n) {
	card[d].record[n].state = GONE; card[d].record[n].key = 0
}

/* Writer.split */
inline split() {
	R0.wasSent = 0; card[d].drawn++; drawKey(0);
	R1.wasSent = 0; card[d].drawn++; drawKey(1)
}

/* The verdict on a batch. */
inline conclude(to) {
	/* REFUSED: only what the server refuses is quarantined. */
	assert(to != QUARANTINED || ids == poison);
	if :: ids & BIT(R0.id) && R0.state == FROZEN -> R0.state = to; R0.wasSent = 0 :: else fi;
	if :: ids & BIT(R1.id) && R1.state == FROZEN -> R1.state = to; R1.wasSent = 0 :: else fi
}

/* ServerDestination.send, Archive.store, Sync.evaluate */
inline send(name) {
	key = name; ids = 0;
	if :: R0.state == FROZEN && R0.key == key -> ids = BIT(R0.id); R0.wasSent = 1 :: else fi;
	if :: R1.state == FROZEN && R1.key == key -> ids = ids | BIT(R1.id); R1.wasSent = 1 :: else fi;
	if
	/* Writer.uploaded */
	:: !(ids & poison) -> printf("sync(0) device %d: stored, uploaded\n", d); store(key, ids); conclude(UPLOADED)
	/* No answer, half of one, or the device is killed before its commit. */
	:: FAULTS && !(ids & poison) -> printf("stumble(0) device %d: stored, not answered\n", d); store(key, ids)
	/* No connection, another server's answer, or the server is killed before it has the batch on its disk. */
	:: FAULTS -> printf("outage(0) device %d: not stored\n", d)
	/* The device is killed, and the request is still under way. */
	:: crashes < CRASHES && lateIDs == 0 -> printf("kill(0) device %d: not stored yet\n", d);
		crashes++; lateKey = key; lateIDs = ids
	/* The server refuses a record, with or without the others: smaller batches find it (Writer.quarantine). */
	:: MANY(ids) && (ids & poison) -> printf("poison(0) device %d: split\n", d); split()
	:: MANY(ids) && (ids & poison) -> printf("poison(0) device %d: the others stored, split\n", d); store(key, ids); split()
	/* The batch is too large for the server, or it has failed five times (Sync.endWaiting). */
	:: MANY(ids) && oversized == 0 -> printf("oversized(0) device %d: split\n", d); oversized++; split()
	:: ids == poison -> printf("poison(0) device %d: quarantined\n", d); conclude(QUARANTINED)
	fi
}

active [DEVICES] proctype device() {
end:	do
	/* Queue.accept, Writer.commit */
	:: atomic { card[d].isOn && R0.state == FREE -> printf("put(1) device %d\n", d); add(0, PENDING) }
	:: atomic { card[d].isOn && R0.state != FREE && R1.state == FREE && d != THIRD -> printf("put(1) device %d\n", d); add(1, PENDING) }
	/* Stopped, or killed while the disk hangs, before the commit: the next start reports the record (InFlight). */
	:: atomic { card[d].isOn && R0.state == FREE && d == 0 && crashes < CRASHES -> printf("put(1) device %d, kill(0)\n", d);
		crashes++; add(0, GONE); told = told | BIT(R0.id) }
	/* BatchSupply.oldest, Writer.freeze: one key, here for all that is pending */
	:: atomic { card[d].isOn && frozen < BATCHES && (R0.state == PENDING || R1.state == PENDING) -> frozen++; card[d].drawn++;
		if :: R0.state == PENDING -> drawKey(0); R0.state = FROZEN :: else fi;
		if :: R1.state == PENDING -> drawKey(1); R1.state = FROZEN :: else fi;
		send(d * KEYS + card[d].drawn) }
	/* BatchSupply.ready: what has no verdict is sent again. */
	:: atomic { card[d].isOn && R0.state == FROZEN -> send(R0.key) }
	:: atomic { card[d].isOn && R1.state == FROZEN && !(R0.state == FROZEN && R0.key == R1.key) -> send(R1.key) }
	/* Writer.requeue, by a person, once the server takes the record */
	:: atomic { card[d].isOn && R0.state == QUARANTINED -> printf("good(0), requeue(0) device %d\n", d);
		poison = 0; card[d].drawn++; drawKey(0); R0.state = FROZEN }
	/* Writer.purge, after the retention: a batch as a whole, or the rest of it gets a new key */
	:: atomic { card[d].isOn && R0.state == UPLOADED -> printf("night(0) device %d\n", d);
		/* CONFIRMED: only what the server has stored is deleted. */
		assert(everOnServer & BIT(R0.id));
		if :: R1.state == UPLOADED && R1.key == R0.key -> delete(1) :: else fi;
		delete(0) }
	/* Writer.evictPending, on a full card: the ledger has it. */
	:: atomic { card[d].isOn && R1.state == PENDING -> printf("shrink(0) device %d\n", d);
		told = told | BIT(R1.id); delete(1) }
	od
}

inline copy(n) {
	card[COPY].record[n].state = card[0].record[n].state; card[COPY].record[n].id = card[0].record[n].id;
	card[COPY].record[n].key = card[0].record[n].key; card[COPY].record[n].wasSent = card[0].record[n].wasSent
}

/* Writer.resend */
inline resend(n) {
	if :: card[e].record[n].state == UPLOADED -> card[e].record[n].state = FROZEN :: else fi
}

/* What is on the cards, and what of that counts as uploaded. */
inline look(n) {
	if :: card[e].record[n].state != FREE && card[e].record[n].state != GONE -> there = there | BIT(card[e].record[n].id) :: else fi;
	if :: card[e].record[n].state == UPLOADED -> uploaded = uploaded | BIT(card[e].record[n].id) :: else fi
}

inline lookAround() {
	there = 0; uploaded = 0; e = 0;
	do :: e < DEVICES -> look(0); look(1); e++ :: else -> break od
}

active proctype world() {
	/* A history has a record that the server refuses, or a batch that is too large. */
	atomic { if :: poison = BIT(0); oversized = 1 :: true fi; card[0].isOn = true; card[THIRD].isOn = true };
progress:
	do
	:: atomic { lateIDs && !(lateIDs & poison) -> printf("server: stores what a killed device had sent\n");
		store(lateKey, lateIDs); lateKey = 0; lateIDs = 0 }
	:: atomic { lateIDs -> lateKey = 0; lateIDs = 0 }
	/* A card is copied, and both run on. */
	:: atomic { !card[COPY].isOn -> printf("copy(0) device 0\n"); copy(0); copy(1); card[COPY].isOn = true }
	/* The server is restored, without any record, which is more than a backup lacks. What no card has any more is lost, and
	 * people are told how much that is. */
	:: atomic { restores < RESTORES && server != 0 -> printf("server(0): restored; resend(0) on each device\n");
		lookAround(); told = told | (server & ~there);
		restores++; server = 0; e = 0;
		do :: e < DEVICES -> resend(0); resend(1); e++ :: else -> break od }
#ifdef LIVENESS
	:: atomic { isQuiet = true; printf("faultsEnd(0)\n"); break }
	od;
	do
	:: atomic { lateIDs -> lateKey = 0; lateIDs = 0 }
#endif
	/* DELIVERED: every history comes here once faults end; else it stops at an invalid end, or is a circle. */
	:: atomic { lateIDs == 0 && SETTLED(0) && SETTLED(COPY) && SETTLED(THIRD) ->
		lookAround();
		/* LOST: each record is at the server, on a card, or reported. */
		assert((made & ~(server | there | told)) == 0);
		/* STILL: the server has what a card has as uploaded. */
		assert((uploaded & ~server) == 0);
		card[0].isOn = false; card[COPY].isOn = false; card[THIRD].isOn = false; break }
	od
}
