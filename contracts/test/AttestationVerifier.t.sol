// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AttestationVerifier} from "../src/AttestationVerifier.sol";
import {Vm, World} from "./World.sol";

/// A contract on another chain accepts a gateway's signature, for a limited time.
contract AttestationVerifierTest is World {
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;
    uint256 private constant ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
    address private constant CORE = 0x5FbDB2315678afecb367f032d93F642f64180aa3;
    uint64 private constant NOW = uint64(START);
    uint64 private constant MAX_AGE = 300;

    AttestationVerifier private verifier;
    address private gateway = person("gateway");
    address private next = person("next");

    function setUp() public override {
        vm.warp(START);
        bytes memory code = vm.envOr("MUTANT_VERIFIER", type(AttestationVerifier).creationCode);
        verifier = AttestationVerifier(create(abi.encodePacked(code, abi.encode(admin, 84532, CORE))));
        setKey(gateway, NOW - 1000, NOW + 1000);
    }

    function test_acceptsTheSecondFormOfAPublishedKey() public {
        AttestationVerifier.AssetAttestation memory s = attestation();
        bytes memory signature = signatureOf(gateway, digestV2Of(s));
        require(verifier.typedDigestV2(s) == digestV2Of(s), "digest");
        require(isBelieved(verifier.checkV2(s, signature, MAX_AGE)), "valid");
        verifier.requireAttestedV2(s, signature, MAX_AGE);
        s.flagged = true;
        (bool success, bytes memory reason) =
            address(verifier).call(abi.encodeCall(verifier.requireAttestedV2, (s, signature, MAX_AGE)));
        require(!success && bytes4(reason) == AttestationVerifier.NotAttested.selector, "flagged");
    }

    /// A change of any field of the second form leaves a signature of another key, or of none.
    function testFuzz_everyFieldOfTheSecondFormIsSigned(uint8 field, uint256 change) public view {
        AttestationVerifier.AssetAttestation memory s = attestation();
        bytes memory signature = signatureOf(gateway, digestV2Of(s));
        change = 1 + change % 200;
        field = field % 9;
        if (field == 0) s.tokenId ^= change;
        if (field == 1) s.state = uint8(1 + (s.state + change % 5) % 6);
        if (field == 2) s.flags ^= uint8(change);
        if (field == 3) s.authentic = !s.authentic;
        if (field == 4) s.flagged = !s.flagged;
        if (field == 5) s.blockNumber += uint64(change);
        if (field == 6) s.blockHash = bytes32(uint256(s.blockHash) ^ change);
        if (field == 7) s.ownerCommitment = bytes32(change);
        if (field == 8) s.issuedAt -= uint64(change);
        require(!isBelieved(verifier.checkV2(s, signature, MAX_AGE)), "changed");
    }

    function test_theSecondFormIsBoundToChainRegistryKeyAndTime() public {
        AttestationVerifier.AssetAttestation memory s = attestation();
        bytes memory signature = signatureOf(gateway, digestV2Of(s));
        AttestationVerifier[2] memory others = [
            new AttestationVerifier(admin, 1, CORE), new AttestationVerifier(admin, 84532, stranger)
        ];
        for (uint256 i = 0; i < 2; ++i) {
            vm.prank(admin);
            others[i].setKey(gateway, NOW - 1000, NOW + 1000);
            AttestationVerifier.Outcome other = others[i].checkV2(s, signature, MAX_AGE);
            require(other == AttestationVerifier.Outcome.UnknownSigner, "other chain or registry");
        }
        bytes memory foreign = signatureOf(stranger, digestV2Of(s));
        require(verifier.checkV2(s, foreign, MAX_AGE) == AttestationVerifier.Outcome.UnknownSigner, "signer");
        require(verifier.checkV2(s, signature, 9) == AttestationVerifier.Outcome.TooOld, "age");
        s.state = 0;
        require(verifier.checkV2(s, signature, MAX_AGE) == AttestationVerifier.Outcome.NoSuchState, "NONE");
        vm.prank(admin);
        verifier.revokeKey(gateway);
        s = attestation();
        require(verifier.checkV2(s, signature, MAX_AGE) == AttestationVerifier.Outcome.RevokedKey, "revoked");
    }

    function test_believesBothFormsOfAPublishedKey() public view {
        require(typedOutcome(statement()) == AttestationVerifier.Outcome.Valid, "typed");
        require(rawOutcome(statement()) == AttestationVerifier.Outcome.Valid, "raw");
        verifier.requireAttested(statement(), signatureOf(gateway, verifier.typedDigest(statement())), MAX_AGE);
        verifier.requireAttestedRaw(1042, 3, 84532, NOW - 10, rawSignature(gateway, statement()), MAX_AGE);
    }

    /// Every field is signed: after a change of any of them, the signature is not the gateway's.
    function testFuzz_everyFieldIsSigned(uint8 field, uint256 change, uint8 state) public view {
        AttestationVerifier.AssetState memory s = statement();
        bytes memory typedSignature = signatureOf(gateway, verifier.typedDigest(s));
        bytes memory raw = rawSignature(gateway, s);
        change = 1 + change % 1_000_000;
        field = field % 5;
        if (field == 0) s.tokenId ^= change;
        if (field == 1) s.state = state % 6 + 1 == 3 ? 4 : state % 6 + 1;
        if (field == 2) s.timestamp -= uint64(change % 200 + 1);
        if (field == 3) s.blockNumber += uint64(change);
        if (field == 4) s.blockHash = bytes32(uint256(s.blockHash) ^ change);
        require(!isBelieved(verifier.check(s, typedSignature, MAX_AGE)), "typed");
        bool rawIsTheSame = field > 2; // the raw form does not name the block
        require(isBelieved(rawWith(s, raw)) == rawIsTheSame, "raw");
    }

    function test_refusesOtherChainsAndRegistries() public {
        AttestationVerifier.AssetState memory s = statement();
        s.chainId = 1;
        require(typedOutcome(s) == AttestationVerifier.Outcome.OtherChain, "typed");
        require(rawOutcome(s) == AttestationVerifier.Outcome.OtherChain, "raw");
        s = statement();
        AttestationVerifier other = new AttestationVerifier(admin, 84532, stranger);
        vm.prank(admin);
        other.setKey(gateway, NOW - 1000, NOW + 1000);
        bytes memory signature = signatureOf(gateway, verifier.typedDigest(s));
        require(other.check(s, signature, MAX_AGE) == AttestationVerifier.Outcome.UnknownSigner, "other registry");
    }

    function test_refusesStatesThatAreNeverAttested() public view {
        AttestationVerifier.AssetState memory s = statement();
        for (uint256 i = 1; i <= 6; ++i) {
            s.state = uint8(i);
            require(typedOutcome(s) == AttestationVerifier.Outcome.Valid, "1 to 6");
        }
        s.state = 0;
        require(typedOutcome(s) == AttestationVerifier.Outcome.NoSuchState, "NONE");
        s.state = 7;
        require(rawOutcome(s) == AttestationVerifier.Outcome.NoSuchState, "7");
    }

    function test_refusesWhatIsTooOldOrTooNew() public view {
        AttestationVerifier.AssetState memory s = statement();
        s.timestamp = NOW - MAX_AGE;
        require(typedOutcome(s) == AttestationVerifier.Outcome.Valid, "just fresh");
        s.timestamp -= 1;
        require(typedOutcome(s) == AttestationVerifier.Outcome.TooOld, "too old");
        s.timestamp = NOW + 60;
        require(typedOutcome(s) == AttestationVerifier.Outcome.Valid, "clocks differ");
        s.timestamp += 1;
        require(typedOutcome(s) == AttestationVerifier.Outcome.FromTheFuture, "not so much");
        s.timestamp = 1;
        AttestationVerifier.Outcome anyAge =
            verifier.checkRaw(1042, 3, 84532, 1, rawSignature(gateway, s), type(uint64).max);
        require(anyAge == AttestationVerifier.Outcome.OutsideKeyWindow, "the longest age does not overflow");
    }

    function test_refusesOddSignatures() public view {
        AttestationVerifier.AssetState memory s = statement();
        (uint8 v, bytes32 r, bytes32 low) = vm.sign(keyOf[gateway], verifier.typedDigest(s));
        require(uint256(low) <= HALF_ORDER, "low");
        bytes[5] memory odd = [
            abi.encodePacked(r, ORDER - uint256(low), v == 27 ? uint8(28) : uint8(27)),
            abi.encodePacked(r, low, v - 27),
            abi.encodePacked(r, low),
            abi.encodePacked(r, low, v, uint8(0)),
            abi.encodePacked(bytes32(0), low, v)
        ];
        for (uint256 i = 0; i < odd.length; ++i) {
            require(verifier.check(s, odd[i], MAX_AGE) == AttestationVerifier.Outcome.BadSignature, "odd");
        }
    }

    function test_believesAKeyForItsWindowOnly() public {
        AttestationVerifier.AssetState memory s = statement();
        require(outcomeOf(next, s) == AttestationVerifier.Outcome.UnknownSigner, "not entered");
        setKey(next, NOW - 9, NOW + 1000);
        require(outcomeOf(next, s) == AttestationVerifier.Outcome.OutsideKeyWindow, "not yet");
        setKey(next, NOW - 10, NOW + 1000);
        require(outcomeOf(next, s) == AttestationVerifier.Outcome.Valid, "from its first second");
        // A key that is entered for later counts for nothing, even for what it dates ahead.
        setKey(next, NOW + 10, NOW + 1000);
        s.timestamp = NOW + 20;
        require(outcomeOf(next, s) == AttestationVerifier.Outcome.OutsideKeyWindow, "its time has not begun");
        setKey(next, NOW, NOW + 1000);
        s.timestamp = NOW;
        require(outcomeOf(next, s) == AttestationVerifier.Outcome.Valid, "its time begins now");
        s.timestamp = NOW - 10;
        // Rotation: what the retired key signed while it was active stays good.
        setKey(gateway, NOW - 1000, NOW - 10);
        require(outcomeOf(gateway, s) == AttestationVerifier.Outcome.Valid, "to its last second");
        s.timestamp += 1;
        require(outcomeOf(gateway, s) == AttestationVerifier.Outcome.OutsideKeyWindow, "not after");
    }

    function test_believesARevokedKeyNothing() public {
        vm.prank(admin);
        verifier.revokeKey(gateway);
        require(outcomeOf(gateway, statement()) == AttestationVerifier.Outcome.RevokedKey, "revoked");
        vm.prank(admin);
        (bool success,) = address(verifier).call(abi.encodeCall(verifier.setKey, (gateway, NOW, NOW + 1)));
        require(!success, "for ever");
    }

    function test_keysAreItsOwnersAffair() public {
        bytes memory set = abi.encodeCall(verifier.setKey, (stranger, NOW, NOW + 1));
        bytes memory revoke = abi.encodeCall(verifier.revokeKey, (gateway));
        for (uint256 i = 0; i < 2; ++i) {
            vm.prank(stranger);
            (bool success,) = address(verifier).call(i == 0 ? set : revoke);
            require(!success, "a stranger");
        }
        bytes[2] memory bad = [
            abi.encodeCall(verifier.setKey, (address(0), NOW, NOW + 1)),
            abi.encodeCall(verifier.setKey, (next, NOW, NOW))
        ];
        for (uint256 i = 0; i < 2; ++i) {
            vm.prank(admin);
            (bool success,) = address(verifier).call(bad[i]);
            require(!success, "no key");
        }
    }

    function test_ownershipIsNotRenounced() public {
        vm.prank(admin);
        (bool success, bytes memory reason) =
            address(verifier).call(abi.encodeWithSignature("renounceOwnership()"));
        bytes memory expected = abi.encodeWithSignature("OwnableInvalidOwner(address)", address(0));
        require(!success && keccak256(reason) == keccak256(expected), "no account can be the owner after that");
    }

    /// An indexer follows the keys by these events alone.
    function test_logsEachChangeOfAKey() public {
        vm.recordLogs();
        setKey(next, NOW, NOW + 1);
        vm.prank(admin);
        verifier.revokeKey(next);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 2, "one event for each change");
        bytes32 signer = bytes32(uint256(uint160(next)));
        for (uint256 i = 0; i < 2; ++i) require(logs[i].topics.length == 2 && logs[i].topics[1] == signer, "signer");
        require(logs[0].topics[0] == keccak256("KeySet(address,uint64,uint64)"), "set");
        require(keccak256(logs[0].data) == keccak256(abi.encode(NOW, NOW + 1)), "window");
        require(logs[1].topics[0] == keccak256("KeyRevoked(address)") && logs[1].data.length == 0, "revoked");
    }

    function test_saysWhyItReverts() public {
        AttestationVerifier.AssetState memory s = statement();
        bytes memory signature = signatureOf(stranger, verifier.typedDigest(s));
        (bool success, bytes memory reason) =
            address(verifier).call(abi.encodeCall(verifier.requireAttested, (s, signature, MAX_AGE)));
        bytes memory expected = abi.encodeWithSelector(
            AttestationVerifier.NotAttested.selector, AttestationVerifier.Outcome.UnknownSigner
        );
        require(!success && keccak256(reason) == keccak256(expected), "typed");
        (success, reason) = address(verifier).call(
            abi.encodeCall(verifier.requireAttestedRaw, (1042, 3, 84532, NOW - 10, signature, MAX_AGE))
        );
        require(!success && bytes4(reason) == AttestationVerifier.NotAttested.selector, "raw");
    }

    function statement() private pure returns (AttestationVerifier.AssetState memory) {
        return AttestationVerifier.AssetState(1042, 3, 84532, NOW - 10, 7, keccak256("block"));
    }

    function attestation() private pure returns (AttestationVerifier.AssetAttestation memory) {
        return AttestationVerifier.AssetAttestation(
            1042, 4, 0, true, false, 7, keccak256("block"), keccak256("owner"), NOW - 10
        );
    }

    function setKey(address signer, uint64 from, uint64 until) private {
        vm.prank(admin);
        verifier.setKey(signer, from, until);
    }

    function typedOutcome(AttestationVerifier.AssetState memory s) private view returns (AttestationVerifier.Outcome) {
        return outcomeOf(gateway, s);
    }

    function outcomeOf(address signer, AttestationVerifier.AssetState memory s)
        private
        view
        returns (AttestationVerifier.Outcome)
    {
        return verifier.check(s, signatureOf(signer, typedDigestOf(s)), MAX_AGE);
    }

    function rawOutcome(AttestationVerifier.AssetState memory s) private view returns (AttestationVerifier.Outcome) {
        return rawWith(s, rawSignature(gateway, s));
    }

    function rawWith(AttestationVerifier.AssetState memory s, bytes memory signature)
        private
        view
        returns (AttestationVerifier.Outcome)
    {
        return verifier.checkRaw(s.tokenId, s.state, s.chainId, s.timestamp, signature, MAX_AGE);
    }

    function isBelieved(AttestationVerifier.Outcome outcome) private pure returns (bool) {
        return outcome == AttestationVerifier.Outcome.Valid;
    }

    /// Written out from the published types, not taken from the contract.
    function typedDigestOf(AttestationVerifier.AssetState memory s) private pure returns (bytes32) {
        bytes32 kind = keccak256(
            "AssetState(uint256 tokenId,uint8 state,uint256 chainId,uint64 timestamp,uint64 blockNumber,bytes32 blockHash)"
        );
        bytes32 body = keccak256(
            abi.encode(kind, s.tokenId, s.state, s.chainId, s.timestamp, s.blockNumber, s.blockHash)
        );
        return keccak256(abi.encodePacked(hex"1901", domainOf("1"), body));
    }

    /// Written out from the published types, not taken from the contract.
    function digestV2Of(AttestationVerifier.AssetAttestation memory s) private pure returns (bytes32) {
        bytes32 kind = keccak256(
            "AssetAttestation(uint256 tokenId,uint8 state,uint8 flags,bool authentic,bool flagged,uint64 blockNumber,bytes32 blockHash,bytes32 ownerCommitment,uint64 issuedAt)"
        );
        return keccak256(abi.encodePacked(hex"1901", domainOf("2"), keccak256(abi.encode(kind, s))));
    }

    function domainOf(string memory version) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Touchstone"),
                keccak256(bytes(version)),
                uint256(84532),
                CORE
            )
        );
    }

    function rawSignature(address signer, AttestationVerifier.AssetState memory s) private view returns (bytes memory) {
        return signatureOf(signer, keccak256(abi.encode(s.tokenId, s.state, s.chainId, s.timestamp)));
    }

    function signatureOf(address signer, bytes32 digest) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keyOf[signer], digest);
        return abi.encodePacked(r, s, v);
    }
}
