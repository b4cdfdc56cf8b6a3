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

bytes32 constant ISSUER = keccak256("ISSUER_ROLE");
bytes32 constant BINDER = keccak256("BINDER_ROLE");
bytes32 constant QA = keccak256("QA_ROLE");
bytes32 constant ATTESTER = keccak256("ATTESTER_ROLE");
bytes32 constant GUARDIAN = keccak256("GUARDIAN_ROLE");
bytes32 constant RECYCLER = keccak256("RECYCLER_ROLE");
