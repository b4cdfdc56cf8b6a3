// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AssetRegistry} from "../src/AssetRegistry.sol";
import {CLAIMED, FLAGGED, RECYCLED, GUARDIAN, RECYCLER} from "../src/Lifecycle.sol";

interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function addr(uint256 key) external pure returns (address);
    function assume(bool condition) external pure;
    function chainId(uint256 id) external;
    function envOr(string calldata name, bytes calldata other) external view returns (bytes memory);
    function etch(address account, bytes calldata code) external;
    function getRecordedLogs() external returns (Log[] memory);
    function load(address account, bytes32 slot) external view returns (bytes32);
    function prank(address sender) external;
    function recordLogs() external;
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function store(address account, bytes32 slot, bytes32 value) external;
    function warp(uint256 timestamp) external;
    function toString(uint256 value) external pure returns (string memory);
}

/// A registry with one account for each role, people without roles, and ways to bring a token into any state.
/// Digests are written out from the published type strings, not taken from the contract.
abstract contract World {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    uint256 internal constant START = 1_800_000_000;
    bytes32 internal constant METADATA = keccak256("metadata");
    bytes32 internal constant REASON = keccak256("reason");

    AssetRegistry internal registry;
    mapping(address account => uint256) internal keyOf;

    address internal admin = person("admin");
    address internal issuer = person("issuer");
    address internal binder = person("binder");
    address internal qa = person("qa");
    address internal attester = person("attester");
    address internal guardian = person("guardian");
    address internal recycler = person("recycler");
    /// Holds GUARDIAN and RECYCLER, and nothing else.
    address internal warden = person("warden");
    /// Owns what is minted.
    address internal maker = person("maker");
    /// Owns what is claimed.
    address internal owner = person("owner");
    address internal recipient = person("recipient");
    address internal stranger = person("stranger");

    function setUp() public virtual {
        vm.warp(START);
        AssetRegistry.Holders memory holders =
            AssetRegistry.Holders(admin, issuer, binder, qa, attester, guardian, recycler);
        registry = deployed(holders, "https://example.org/asset/", "https://example.org/registry");
        does(admin, abi.encodeCall(registry.grantRole, (GUARDIAN, warden)));
        does(admin, abi.encodeCall(registry.grantRole, (RECYCLER, warden)));
    }

    /// The registry, or in a mutation run (scripts/mutation/solidity/run.ts) the mutant of it that the environment holds.
    function deployed(AssetRegistry.Holders memory holders, string memory tokens, string memory contract_)
        internal
        returns (AssetRegistry)
    {
        bytes memory code = vm.envOr("MUTANT_REGISTRY", type(AssetRegistry).creationCode);
        return AssetRegistry(create(abi.encodePacked(code, abi.encode(holders, tokens, contract_))));
    }

    function create(bytes memory code) internal returns (address account) {
        assembly ("memory-safe") {
            account := create(0, add(code, 32), mload(code))
            if iszero(account) {
                returndatacopy(0, 0, returndatasize())
                revert(0, returndatasize())
            }
        }
    }

    function person(string memory name) internal returns (address account) {
        uint256 key = uint256(keccak256(bytes(name)));
        account = vm.addr(key);
        keyOf[account] = key;
    }

    // Acting

    function attempt(address caller, bytes memory call_) internal returns (bool success, bytes memory result) {
        vm.prank(caller);
        return address(registry).call(call_);
    }

    function does(address caller, bytes memory call_) internal returns (bytes memory result) {
        bool success;
        (success, result) = attempt(caller, call_);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
    }

    function fails(address caller, bytes memory call_, bytes memory reason) internal {
        (bool success, bytes memory result) = attempt(caller, call_);
        require(!success, "the call should have been refused");
        require(keccak256(result) == keccak256(reason), "refused for another reason");
    }

    function because(bytes4 selector, uint256 tokenId) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, tokenId);
    }

    function because(bytes4 selector, uint256 tokenId, uint256 detail) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, tokenId, detail);
    }

    function because(bytes4 selector, uint256 tokenId, address account) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, tokenId, account);
    }

    function lacks(address account, bytes32 role) internal pure returns (bytes memory) {
        return abi.encodeWithSignature("AccessControlUnauthorizedAccount(address,bytes32)", account, role);
    }

    // Tokens in a state

    function mint() internal returns (uint256 tokenId) {
        return abi.decode(does(issuer, abi.encodeCall(registry.mint, (maker, METADATA))), (uint256));
    }

    function tagOf(uint256 tokenId) internal pure returns (bytes32) {
        return keccak256(abi.encode("tag", tokenId));
    }

    /// A new token in `state`, owned by `holder` if it was claimed. `before` is the state in which it was flagged,
    /// with RECALL; it counts for FLAGGED only.
    function tokenIn(uint8 state, uint8 before, address holder) internal returns (uint256 tokenId) {
        tokenId = mint();
        uint8 target = state == FLAGGED ? before : state;
        if (target == RECYCLED) target = 3;
        if (target >= 2) does(binder, abi.encodeCall(registry.bindTag, (tokenId, tagOf(tokenId))));
        if (target >= 3) does(qa, abi.encodeCall(registry.activate, (tokenId)));
        if (target == CLAIMED) claimFor(tokenId, holder);
        if (state == FLAGGED) does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)));
        if (state == RECYCLED) does(recycler, abi.encodeCall(registry.recycle, (tokenId)));
    }

    function tokenIn(uint8 state) internal returns (uint256 tokenId) {
        return tokenIn(state, CLAIMED, owner);
    }

    function claimFor(uint256 tokenId, address claimant) internal {
        does(stranger, claimCall(tokenId, claimant));
    }

    /// A good claim: signed by the attester and the claimant over the current nonce.
    function claimCall(uint256 tokenId, address claimant) internal view returns (bytes memory) {
        uint256 deadline = block.timestamp + 60;
        bytes32 attested = claimHash(tokenId, claimant, tagOf(tokenId), 7, nonceOf(tokenId), deadline);
        bytes memory consent = signed(claimant, consentHash(tokenId, claimant, nonceOf(tokenId), deadline));
        return claimCall(tokenId, claimant, deadline, signed(attester, attested), consent);
    }

    function claimCall(
        uint256 tokenId,
        address claimant,
        uint256 deadline,
        bytes memory attesterSig,
        bytes memory claimantSig
    ) internal view returns (bytes memory) {
        return abi.encodeCall(
            registry.claim, (tokenId, claimant, 7, deadline, attester, attesterSig, claimantSig)
        );
    }

    /// A reported item that was claimed: announced, and recycled when the notice is over. The time is that of before.
    function recycleAfterNotice(uint256 tokenId) internal {
        uint256 time = block.timestamp;
        does(warden, abi.encodeCall(registry.announceRecycle, (tokenId)));
        vm.warp(registry.recyclableFrom(tokenId));
        does(warden, abi.encodeCall(registry.recycle, (tokenId)));
        vm.warp(time);
    }

    function offer(uint256 tokenId) internal {
        address from = registry.ownerOf(tokenId);
        does(from, abi.encodeCall(registry.initiateTransfer, (tokenId, recipient, uint64(START + 3 days), REASON)));
    }

    // Reading

    function wordOf(uint256 tokenId) internal view returns (uint256) {
        return uint256(vm.load(address(registry), keccak256(abi.encode(tokenId, uint256(3)))));
    }

    function stateOf(uint256 tokenId) internal view returns (uint8) {
        return uint8(wordOf(tokenId) >> 224);
    }

    function flagsOf(uint256 tokenId) internal view returns (uint8) {
        return uint8(wordOf(tokenId) >> 232);
    }

    function nonceOf(uint256 tokenId) internal view returns (uint32 nonce) {
        (,, nonce) = registry.pendingTransfer(tokenId);
    }

    // Signing

    function signed(address signer, bytes32 structHash) internal view returns (bytes memory) {
        return signedWith(keyOf[signer], structHash);
    }

    function signedWith(uint256 key, bytes32 structHash) internal view returns (bytes memory) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("AssetRegistry"),
                keccak256("1"),
                block.chainid,
                address(registry)
            )
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, keccak256(abi.encodePacked(hex"1901", domain, structHash)));
        return abi.encodePacked(r, s, v);
    }

    function claimHash(
        uint256 tokenId,
        address claimant,
        bytes32 tagHash,
        uint32 tapCounter,
        uint32 nonce,
        uint256 deadline
    ) internal pure returns (bytes32) {
        bytes32 kind = keccak256(
            "Claim(uint256 tokenId,address claimant,bytes32 tagHash,uint32 tapCounter,uint32 nonce,uint256 deadline)"
        );
        return keccak256(abi.encode(kind, tokenId, claimant, tagHash, tapCounter, nonce, deadline));
    }

    function consentHash(uint256 tokenId, address claimant, uint32 nonce, uint256 deadline)
        internal
        pure
        returns (bytes32)
    {
        bytes32 kind = keccak256("ClaimConsent(uint256 tokenId,address claimant,uint32 nonce,uint256 deadline)");
        return keccak256(abi.encode(kind, tokenId, claimant, nonce, deadline));
    }

    function initiateHash(uint256 tokenId, address from, address to, uint64 expiry, uint32 nonce, bytes32 messageHash)
        internal
        pure
        returns (bytes32)
    {
        bytes32 kind = keccak256(
            "InitiateTransfer(uint256 tokenId,address from,address to,uint64 expiry,uint32 nonce,bytes32 messageHash)"
        );
        return keccak256(abi.encode(kind, tokenId, from, to, expiry, nonce, messageHash));
    }

    function acceptHash(uint256 tokenId, address from, address to, uint64 expiry, uint32 nonce)
        internal
        pure
        returns (bytes32)
    {
        bytes32 kind =
            keccak256("AcceptTransfer(uint256 tokenId,address from,address to,uint64 expiry,uint32 nonce)");
        return keccak256(abi.encode(kind, tokenId, from, to, expiry, nonce));
    }

    function cancelHash(uint256 tokenId, address from, uint32 nonce) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(keccak256("CancelTransfer(uint256 tokenId,address from,uint32 nonce)"), tokenId, from, nonce)
        );
    }

    function invalidateHash(uint256 tokenId, address owner_, uint32 nonce) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("InvalidateNonce(uint256 tokenId,address owner,uint32 nonce)"), tokenId, owner_, nonce
            )
        );
    }

    function recycleHash(uint256 tokenId, address owner_, uint32 nonce, uint256 deadline)
        internal
        pure
        returns (bytes32)
    {
        bytes32 kind = keccak256("Recycle(uint256 tokenId,address owner,uint32 nonce,uint256 deadline)");
        return keccak256(abi.encode(kind, tokenId, owner_, nonce, deadline));
    }
}
