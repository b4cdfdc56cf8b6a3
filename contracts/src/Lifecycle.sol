// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// The numbers of the record: lifecycle states (spec §3), flag bits and roles. All are public and fixed for ever.

uint8 constant NONE = 0;
uint8 constant MINTED = 1;
uint8 constant BOUND = 2;
uint8 constant ACTIVATED = 3;
uint8 constant CLAIMED = 4;
uint8 constant FLAGGED = 5;
uint8 constant RECYCLED = 6;

// Owner bits: the holder of a claimed item may set and clear them, and so may a guardian.
uint8 constant LOST = 0x01;
uint8 constant STOLEN = 0x02;
// Authority bits: only a guardian may set or clear them.
uint8 constant RECALL = 0x04;
uint8 constant STOLEN_CONFIRMED = 0x08;
uint8 constant INVESTIGATION = 0x10;
// Evidence, not a report: it leaves the state alone.
uint8 constant TAMPER = 0x20;

uint8 constant OWNER_FLAGS = LOST | STOLEN;
uint8 constant REPORT_FLAGS = OWNER_FLAGS | RECALL | STOLEN_CONFIRMED | INVESTIGATION;
uint8 constant ALL_FLAGS = REPORT_FLAGS | TAMPER;

// Delays and bounds.
// Between the naming of a new admin and its acceptance. OpenZeppelin changes it with a delay of its own.
uint48 constant ADMIN_DELAY = 3 days;
// Between the announcement and the recycling of a reported item that a customer has claimed.
uint64 constant RECYCLE_DELAY = 30 days;
// One attester makes this many claims and TAMPER marks in a day of 86,400 s (UTC). The admin may set another number.
uint32 constant ATTESTER_LIMIT = 10_000;
// Importers and the counter share the ids below this one.
uint64 constant SHARED_IDS = 1 << 40;
// The counter goes on here after the last shared id. Importers cannot take the 2^48 ids from here to the end of 64 bits.
uint64 constant COUNTED_IDS = 0xffff << 48;

bytes32 constant ISSUER = keccak256("ISSUER_ROLE");
bytes32 constant BINDER = keccak256("BINDER_ROLE");
bytes32 constant QA = keccak256("QA_ROLE");
bytes32 constant ATTESTER = keccak256("ATTESTER_ROLE");
bytes32 constant GUARDIAN = keccak256("GUARDIAN_ROLE");
bytes32 constant RECYCLER = keccak256("RECYCLER_ROLE");
